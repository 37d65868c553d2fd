#include <gmock/gmock.h>

#include "recordings/input_file.hpp"
#include "report/pictures.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

using std::chrono::seconds;

TEST(QueuePicture, BarsLieAtTheLowestFreePlace) {
  const std::vector<QueueBar> bars{{seconds{0}, seconds{10}, 4_GiB, 0},
                                   {seconds{0}, seconds{20}, 2_GiB, 1},
                                   {seconds{10}, seconds{30}, 3_GiB, 2},   // in the place of the first
                                   {seconds{15}, seconds{30}, 2_GiB, 3}};  // 3 to 4 is too narrow
  EXPECT_THAT(stack_bars(bars), testing::ElementsAre(0, 4_GiB, 0, 6_GiB));
}

TEST(QueuePicture, DrawsEveryCardWithItsTitle) {
  const ScratchFolder folder;
  QueuePanel panel{.title = "strict, card 0", .total = 10_GiB, .bars = {}, .levels = {}};
  panel.bars = {{seconds{0}, seconds{10}, 4_GiB, 0}, {seconds{5}, seconds{9}, 5_GiB, 1, true}};
  panel.levels = {{seconds{0}, 6_GiB, 4_GiB}, {seconds{10}, 0, 0}};
  QueuePanel idle{.title = "strict, card 1", .total = 10_GiB, .bars = {}, .levels = {}};
  draw_queue_picture("two cards", {panel, idle}, folder.file("a.svg"));
  const std::string picture = read_input_file(folder.file("a.svg"));
  for (const char* text : {"two cards", "strict, card 0", "strict, card 1", "promised", "used", "GiB"}) {
    EXPECT_NE(picture.find(text), std::string::npos) << text;
  }
  draw_queue_picture("two cards", {panel, idle}, folder.file("b.svg"));
  EXPECT_EQ(picture, read_input_file(folder.file("b.svg")));
}

}  // namespace
}  // namespace vramlab
