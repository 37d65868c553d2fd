#include "models/gpu_catalogue.hpp"

#include <algorithm>

#include <gmock/gmock.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

TEST(GpuCatalogue, KnowsTheMeasuredCard) {
  const Gpu& gpu = find_gpu("h100-80gb");
  EXPECT_EQ(gpu.total, 85'017'493'504U);
  EXPECT_EQ(gpu.context, 552'402'944U);
  EXPECT_EQ(gpu.figures, GpuFigures::measured);
}

TEST(GpuCatalogue, TakesTheSizeOnTheBoxForTheOthers) {
  EXPECT_EQ(find_gpu("rtx-3060-12gb").total, 12_GiB);
  EXPECT_EQ(find_gpu("rtx-3060-12gb").figures, GpuFigures::nominal);
  EXPECT_EQ(find_gpu("rtx-4090-24gb").total, 24_GiB);
}

TEST(GpuCatalogue, IsSortedWithoutDoubles) {
  const auto cards = gpu_catalogue();
  const auto not_below = [](const Gpu& a, const Gpu& b) { return a.id >= b.id; };
  EXPECT_EQ(std::adjacent_find(cards.begin(), cards.end(), not_below), cards.end());
}

TEST(GpuCatalogue, SuggestsTheNearestName) {
  try {
    find_gpu("rtx-3060-12g", "ratchet.json: /device/gpu");
    FAIL() << "found";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().at(0).where, "ratchet.json: /device/gpu");
    EXPECT_THAT(error.problems().at(0).what, HasSubstr("Did you mean \"rtx-3060-12gb\"?"));
  }
}

}  // namespace
}  // namespace vramlab
