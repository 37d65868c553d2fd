#include <cmath>

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

// Boxes that say where they lie are left there; failures and parameters have their marks and their panel.
TEST(QueuePicture, DrawsWhatJobsMoveBelowWhatTheyHold) {
  const ScratchFolder folder;
  QueuePanel panel{.title = "together", .total = 10_GiB, .bars = {}, .levels = {}};
  panel.bars = {{.from = seconds{0}, .to = seconds{10}, .memory = 4_GiB, .job = 0, .low = 0},
                {.from = seconds{4}, .to = seconds{9}, .memory = 5_GiB, .job = 1, .low = 4_GiB}};
  EXPECT_THAT(stack_bars(panel.bars), testing::ElementsAre(0, 4_GiB));
  panel.failures = {seconds{9}};
  panel.curves = {{.name = "first: batch",
                   .parameter = "batch",
                   .job = 0,
                   .number = 0,
                   .values = {{seconds{0}, 4}, {seconds{10}, std::nan("")}}},
                  {.name = "second: lq",
                   .parameter = "lq",
                   .job = 1,
                   .number = 1,
                   .values = {{seconds{4}, 32}, {seconds{6}, 40}}}};
  draw_queue_picture("moves", {panel, panel}, folder.file("a.svg"));
  const std::string picture = read_input_file(folder.file("a.svg"));
  for (const char* text :
       {"together", "parameters of the jobs", "first: batch", "second: lq", "out of memory"}) {
    EXPECT_NE(picture.find(text), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace vramlab
