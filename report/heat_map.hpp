// A static picture of a matrix of figures: the warmer a cell, the larger its value.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vramlab {

/// One cell.
struct HeatCell {
  double heat = 0;         ///< 0 = cold (white-green) to 1 = hot; beyond both ends it is cut
  std::string text;        ///< what it says
  bool is_marked = false;  ///< a frame around it
};

struct HeatMap {
  std::string title;
  std::string legend;  ///< a line below
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::vector<std::vector<HeatCell>> cells;  ///< by row
};

/// The map as SVG. Throws InternalError if the cells do not fill rows and columns.
std::string heat_map_svg(const HeatMap& map);

/// Writes it. Throws InputError unless `file` ends in .svg, or if it cannot be written.
void draw_heat_map(const HeatMap& map, const std::filesystem::path& file);

}  // namespace vramlab
