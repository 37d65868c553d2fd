#include "models/linear.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "sim/runs/step_executor.hpp"
#include "tests/models/program_check.hpp"

namespace vramlab {
namespace {

using testing::IsEmpty;

LinearSpec tenth_and_twelfth_of_12_gib() {
  LinearSpec spec;
  spec.fixed = 12_GiB / 10;
  spec.per_sample = 12_GiB * 81 / 1000;
  spec.resident = 500_MiB;
  spec.batch = {"batch", 1, 11};
  spec.time = {.floor_seconds = 0.01, .base_seconds = 0, .seconds_per_pixel = 0.004};
  return spec;
}

TEST(LinearWorkload, PeaksOnTheLineWhateverCameBefore) {
  const LinearSpec spec = tenth_and_twelfth_of_12_gib();
  const LinearWorkload model{spec};
  SimulatedCard card{24_GiB};
  SimulatedProcess process{card, AllocatorOptions{}};
  process.executor().run(model.build());
  Bytes most = 0;
  for (const std::int64_t batch : {8, 10, 9, 3, 8, 11, 1, 10}) {
    process.allocator().reset_peak_stats();
    ASSERT_EQ(process.executor().run(model.step({batch})).result, StepResult::ok);
    const MemoryStats& stats = process.allocator().stats();
    const auto peak = static_cast<Bytes>(stats.allocated_bytes.all().peak);
    EXPECT_EQ(peak, model.peak(batch));
    EXPECT_NEAR(static_cast<double>(peak),
                static_cast<double>(spec.fixed + spec.per_sample * static_cast<Bytes>(batch)), 1 << 20);
    EXPECT_EQ(static_cast<Bytes>(stats.allocated_bytes.all().current), 500_MiB);
    most = std::max(most, peak);
    EXPECT_EQ(static_cast<Bytes>(stats.reserved_bytes.all().current), most);  // nothing is ever wasted
  }
}

TEST(LinearWorkload, IsWellFormedAndTakesTime) {
  const LinearWorkload model{tenth_and_twelfth_of_12_gib()};
  ProgramCheck process;
  ASSERT_THAT(process.run(model.build()), IsEmpty());
  for (std::int64_t batch = 1; batch <= 11; ++batch) {
    ASSERT_THAT(process.run(model.step({batch})), IsEmpty());
  }
  EXPECT_EQ(model.step({1}).duration, from_seconds(0.01));
  EXPECT_EQ(model.step({9}).duration, from_seconds(0.036));
  EXPECT_EQ(model.samples({9}), 9);
}

TEST(LinearWorkload, RefusesSizesTheAllocatorWouldBlur) {
  LinearSpec spec = tenth_and_twelfth_of_12_gib();
  spec.per_sample = 11_MiB;
  EXPECT_THROW(LinearWorkload{spec}, InputError);
  spec = tenth_and_twelfth_of_12_gib();
  spec.resident = 4_MiB;
  EXPECT_THROW(LinearWorkload{spec}, InputError);
  spec.resident = 2_GiB;  // more than fixed
  EXPECT_THROW(LinearWorkload{spec}, InputError);
}

}  // namespace
}  // namespace vramlab
