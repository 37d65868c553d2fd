#include <gtest/gtest.h>

#include "core/error.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace {

HeatMap small_map() {
  return {.title = "a < b",
          .legend = "legend",
          .columns = {"x", "y"},
          .rows = {"row"},
          .cells = {{{0, "cold", false}, {2, "hot", true}}}};
}

TEST(HeatMap, CellsAreColouredByTheirHeat) {
  const std::string svg = heat_map_svg(small_map());
  EXPECT_NE(svg.find("fill=\"#d9f0d3\"/>"), std::string::npos);                          // cold
  EXPECT_NE(svg.find("fill=\"#f46d43\" stroke=\"#333333\""), std::string::npos) << svg;  // cut to hot, framed
  EXPECT_NE(svg.find(">hot</text>"), std::string::npos);
}

TEST(HeatMap, TextIsEscaped) { EXPECT_NE(heat_map_svg(small_map()).find("a &lt; b"), std::string::npos); }

TEST(HeatMap, RefusesARowThatIsNotFull) {
  HeatMap map = small_map();
  map.cells[0].pop_back();
  EXPECT_THROW(heat_map_svg(map), InternalError);
}

TEST(HeatMap, RefusesAnEndingThatItCannotWrite) {
  EXPECT_THROW(draw_heat_map(small_map(), "map.png"), InputError);
}

}  // namespace
}  // namespace vramlab
