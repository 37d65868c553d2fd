#include <regex>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/json.hpp"
#include "recordings/input_file.hpp"
#include "report/pictures.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

std::vector<IterationRecord> some_iterations() {
  std::vector<IterationRecord> records;
  for (std::int64_t i = 1; i <= 20; ++i) {
    records.push_back({.iteration = i,
                       .memory = {.total = 12_GiB},
                       .step_peak_allocated = static_cast<Bytes>(i) * 512_MiB,
                       .step_peak_reserved = 11_GiB,
                       .result = i == 7 ? StepResult::oom : StepResult::ok,
                       .choice = std::make_shared<StepChoice>(StepChoice{.point = {i, 64}})});
  }
  return records;
}

TEST(TracePicture, DrawsEveryRunWithItsLabel) {
  const ScratchFolder folder;
  const auto records = some_iterations();
  const PictureFrame frame{
      .title = "it's a test", .parameters = {"batch", "lq"}, .band_low = 0.8, .band_high = 0.9};
  draw_trace_picture(frame, {{"first", &records}, {"second", &records}}, folder.file("a.svg"));
  const std::string picture = read_input_file(folder.file("a.svg"));
  for (const char* text :
       {"it's a test", "first", "second", "peak allocated", "limit", "OOM", "batch", "lq", "iteration"}) {
    EXPECT_NE(picture.find(text), std::string::npos) << text;
  }
  draw_trace_picture(frame, {{"first", &records}}, folder.file("a.png"));
  EXPECT_EQ(read_input_file(folder.file("a.png")).substr(1, 3), "PNG");
}

// Where gnuplot placed `text`, in pixels from the picture's upper edge: one place a panel.
std::vector<double> places_of(const std::string& picture, const std::string& text) {
  std::vector<double> places;
  const std::regex place{R"(translate\([0-9.]+,([0-9.]+)\)[^>]*>\s*<text>)" + text + "</text>"};
  for (auto it = std::sregex_iterator{picture.begin(), picture.end(), place}; it != std::sregex_iterator{};
       ++it)
    places.push_back(std::stod((*it)[1]));
  return places;
}

// Lines that end at one height are named one above the other around it, 15 pixels apart: a name takes that
// much.
TEST(TracePicture, NamesOfLinesThatEndTogetherDoNotCoverEachOther) {
  const ScratchFolder folder;
  const auto records = some_iterations();
  draw_trace_picture({.title = "t", .parameters = {"batch"}},
                     {{"first", &records}, {"second", &records, true}, {"third", &records}},
                     folder.file("a.svg"));
  const std::string picture = read_input_file(folder.file("a.svg"));
  const auto first = places_of(picture, "first");
  const auto second = places_of(picture, "second");
  const auto third = places_of(picture, "third");
  ASSERT_EQ(first.size(), 2U);  // in the panel of memory, and in that of batch
  ASSERT_EQ(second.size(), 2U);
  ASSERT_EQ(third.size(), 2U);
  for (std::size_t panel = 0; panel < 2; ++panel) {
    EXPECT_NEAR(second[panel] - first[panel], 15, 0.2);
    EXPECT_NEAR(third[panel] - second[panel], 15, 0.2);
  }
}

TEST(TracePicture, EqualRunsGiveEqualBytes) {
  const ScratchFolder folder;
  const auto records = some_iterations();
  draw_trace_picture({.title = "t", .parameters = {"batch"}}, {{"a", &records}}, folder.file("a.svg"));
  draw_trace_picture({.title = "t", .parameters = {"batch"}}, {{"a", &records}}, folder.file("b.svg"));
  EXPECT_EQ(read_input_file(folder.file("a.svg")), read_input_file(folder.file("b.svg")));
}

TEST(TracePicture, RefusesOtherEndings) {
  const auto records = some_iterations();
  EXPECT_THROW(draw_trace_picture({}, {{"a", &records}}, "a.pdf"), InputError);
}

}  // namespace
}  // namespace vramlab
