// Kernels and their refused workspaces, found in a recording of super-resolution under falling limits.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fit/fit_model.hpp"
#include "lab/model/recorded.hpp"
#include "models/recorded_model.hpp"
#include "tests/fit/recorded_run.hpp"

namespace vramlab {
namespace {

using testing::UnorderedElementsAre;

class RefusedWorkspaces : public testing::Test {
 protected:
  void SetUp() override {
    const auto settled = recorded_run("sr_dual");
    if (!settled) GTEST_SKIP() << "sr_dual is not there (../shared/data)";
    without = fit_model({*settled}, "sr").spec;
    spec = fit_model({*settled, recorded_run("sr_limits").value()}, "sr").spec;
  }

  RecordedSpec without;  // fitted from whole steps alone
  RecordedSpec spec;
};

// Each convolution asked alone on the same card, with too little memory for anything: the two convolutions at
// full resolution make 27, 27, 13, 22, 9 and 9 attempts (forward pass, gradients of input and weights). The
// first two ask for equal sizes behind equal outputs and are not told apart.
TEST_F(RefusedWorkspaces, AreThoseOfTheConvolutionsAtFullResolution) {
  std::vector<std::size_t> attempts;
  for (const RecordedKernel& kernel : spec.kernels) {
    std::size_t most = 0;
    for (const auto& refusal : kernel.refusals) most = std::max(most, refusal.sizes.size());
    attempts.push_back(most);
  }
  EXPECT_THAT(attempts, UnorderedElementsAre(27, 13, 22, 9, 9));
}

// The recording has 23: at a shape seen before, the kept plan comes first.
TEST_F(RefusedWorkspaces, BeginWithTheFirstChoice) {
  const auto last = std::find_if(spec.kernels.begin(), spec.kernels.end(), [](const RecordedKernel& kernel) {
    return kernel.refusals[0].sizes.size() == 22;
  });
  ASSERT_NE(last, spec.kernels.end());
  const std::vector<Bytes>& sizes = last->refusals[0].sizes;
  EXPECT_EQ(sizes[0], 54893568u);
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 55715328u), 4 + 3 + 5 + 5);
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 54893568u), 2);
  EXPECT_EQ(sizes[15], 160585728u);
  EXPECT_EQ(sizes[21], 59909632u);
}

// Steps that were short of memory stand for no shape, and a second recording of a shape for none either:
// apart from kernels the model is that of sr_dual alone.
TEST_F(RefusedWorkspaces, AddNothingButKernelsToTheModel) {
  EXPECT_NE(spec, without);
  RecordedSpec stripped = spec;
  stripped.kernels.clear();
  for (RecordedTensor& tensor : stripped.tensors) tensor.kernel = -1;
  stripped.workspace_refusals = without.workspace_refusals;
  EXPECT_FALSE(stripped.failures.empty());  // its steps that failed
  stripped.failures.clear();
  EXPECT_EQ(stripped, without);
}

TEST_F(RefusedWorkspaces, AreTheSameWhenReadBack) {
  RecordedSpec written = spec;
  const Json json = parse_json(model_file_text(recorded_model_json(written)), "x");
  EXPECT_EQ(read_recorded_spec(json, "x: "), written);
}

TEST_F(RefusedWorkspaces, DamageIsFound) {
  Json json = recorded_model_json(spec);
  json["data"]["kernels"][0][0][0] = 99;  // a shape that is not there
  EXPECT_THROW(RecordedModel{read_recorded_spec(json, "x: ")}, InputError);
  json["data"]["kernels"] = Json::array();
  EXPECT_THROW(RecordedModel{read_recorded_spec(json, "x: ")}, InputError);
  json["data"]["kernels"] = Json{{{0, {512, 100'000'000}}}};
  EXPECT_THROW(read_recorded_spec(json, "x: "), InputError);
}

// A chain of sr_cap at lq 128 has 19 refusals, 18 attempts after the plan that
// the dense blocks before had kept. Its shapes are none of the model's, so nothing is learnt of kernels.
TEST(RefusedWorkspacesOfOtherShapes, TellNothingOfKernels) {
  const auto settled = recorded_run("sr_dual");
  const auto limited = recorded_run("sr_cap.cap4g");
  if (!settled || !limited) GTEST_SKIP() << "sr_cap is not there (../shared/data)";
  EXPECT_TRUE(fit_model({*settled, *limited}, "sr").spec.kernels.empty());
}

}  // namespace
}  // namespace vramlab
