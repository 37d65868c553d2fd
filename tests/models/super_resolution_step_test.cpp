// The program of a super-resolution step against two recorded steps, and against itself over its range.
#include <cstdlib>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "lab/json.hpp"
#include "lab/model/file.hpp"
#include "models/super_resolution.hpp"
#include "tests/models/program_check.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kStepSource = VRAMLAB_SOURCE_DIR;
constexpr std::size_t kTensors = 188;  // weights and biases of 94 convolutions

std::unique_ptr<WorkloadModel> model() {
  return load_model_file(kStepSource + "/models/superres-rrdb6.json");
}

// Workspaces may differ by the bytes of alignment that are not modelled: at most 0.1 %.
bool nearly_equal(std::int64_t a, std::int64_t b) { return std::abs(a - b) * 1000 <= std::abs(b); }

struct Comparison {
  std::size_t tensors = 0;
  std::size_t workspaces = 0;
};

Comparison expect_equal(const std::vector<ProgramCheck::Event>& program, const Json& recorded) {
  Comparison done;
  EXPECT_EQ(program.size(), recorded.size());
  for (std::size_t i = 0; i < std::min(program.size(), recorded.size()); ++i) {
    const auto size = recorded[i].get<std::int64_t>();
    const bool equal = program[i].workspace ? nearly_equal(program[i].size, size) : program[i].size == size;
    if (!equal) {
      ADD_FAILURE() << "operation " << i << ": " << program[i].size << " instead of " << size;
      return done;
    }
    ++(program[i].workspace ? done.workspaces : done.tensors);
  }
  return done;
}

TEST(SuperResolutionStep, EqualsTwoRecordedSteps) {
  const auto network = model();
  ProgramCheck process;
  ASSERT_THAT(process.run(network->build()), IsEmpty());
  const Json file = read_json_file(kStepSource + "/tests/data/superres-step.json");

  const Json& first = file["steps"][0];
  ASSERT_THAT(process.run(network->step({first["batch"], first["lq"]})), IsEmpty());
  const Comparison at_first = expect_equal(process.events(), first["ops"]);
  EXPECT_EQ(at_first.tensors, 2062U);  // 1,313 allocations, 749 frees
  EXPECT_EQ(at_first.workspaces, 344U);

  const Json& later = file["steps"][1];
  ASSERT_THAT(process.run(network->step({later["batch"], later["lq"]})), IsEmpty());
  const Comparison at_later = expect_equal(process.events(), later["ops"]);
  EXPECT_EQ(at_later.tensors + at_later.workspaces, 2374U);  // 1,187 allocations and as many frees
}

TEST(SuperResolutionStep, KeepsOneGradientAndTwoMomentsPerTrainedTensor) {
  const auto network = model();
  ProgramCheck process;
  ASSERT_THAT(process.run(network->build()), IsEmpty());
  EXPECT_EQ(process.live(0, kTensors), kTensors);
  EXPECT_EQ(process.live(kTensors, 4 * kTensors), 0U);

  for (const Point& point : std::vector<Point>{{4, 32}, {4, 32}, {3, 57}, {64, 64}}) {
    ASSERT_THAT(process.run(network->step(point)), IsEmpty());
    EXPECT_EQ(process.live(0, 4 * kTensors), 4 * kTensors);
  }
}

// Gradients of the step before and those of this one are never alive together: they are set to none between
// the forward and the backward pass.
TEST(SuperResolutionStep, LaterStepsAllocateAndFreeEquallyOften) {
  const auto network = model();
  ProgramCheck process;
  ASSERT_THAT(process.run(network->build()), IsEmpty());
  ASSERT_THAT(process.run(network->step({6, 96})), IsEmpty());
  const auto first = process.events().size();
  ASSERT_THAT(process.run(network->step({6, 96})), IsEmpty());
  std::int64_t sum = 0;
  for (const auto& event : process.events()) sum += event.size;
  EXPECT_EQ(sum, 0);
  EXPECT_EQ(process.events().size(), first + kTensors - 2 * kTensors);  // old gradients, no new moments
}

TEST(SuperResolutionStep, IsWellFormedOverTheWholeRange) {
  const auto network = model();
  ProgramCheck process;
  ASSERT_THAT(process.run(network->build()), IsEmpty());
  for (std::int64_t batch = 1; batch <= 64; batch += 3) {
    for (std::int64_t lq = 32; lq <= 256; lq += 7) {
      const StepProgram program = network->step({batch, lq});
      ASSERT_THAT(process.run(program), IsEmpty()) << batch << ", " << lq;
      EXPECT_EQ(program.persistent_slots, 4 * kTensors);
      EXPECT_GE(program.duration, from_seconds(0.0363));
    }
  }
}

TEST(SuperResolutionStep, CountsSamplesAndPixels) {
  const auto network = model();
  EXPECT_EQ(network->samples({12, 128}), 12);
  EXPECT_EQ(network->pixels({12, 128}), 12 * 128 * 128);
}

TEST(SuperResolution, RefusesASpecificationThatCannotBe) {
  SuperResolutionSpec spec;
  spec.name = "broken";
  spec.growth = 0;
  try {
    SuperResolution refused(spec);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    ASSERT_EQ(error.problems().size(), 2U);
    EXPECT_EQ(error.problems()[0].where, "broken");
    EXPECT_THAT(error.problems()[0].what, HasSubstr("growth is 0"));
    EXPECT_THAT(error.problems()[1].what, HasSubstr("0 convolutions"));
  }
}

}  // namespace
}  // namespace vramlab
