// Models fitted from real recordings give every recorded step back, operation by operation.
#include <algorithm>
#include <map>
#include <ostream>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fit/fit_model.hpp"
#include "lab/model/prediction.hpp"
#include "lab/model/recorded.hpp"
#include "models/recorded_model.hpp"
#include "models/recorded_program.hpp"
#include "tests/fit/recorded_run.hpp"

namespace vramlab {
namespace {

/// A step as a list: size for an allocation, −1 − number for a free of the step's own, −10⁹ − rank for one of
/// what the step before kept.
using Actions = std::vector<std::int64_t>;
constexpr std::int64_t kKept = -1'000'000'000;

Actions recorded_actions(const StepRecord& step) {
  Actions actions;
  for (const StepAction& action : step.actions) {
    if (action.kind == StepAction::Kind::allocate) {
      actions.push_back(static_cast<std::int64_t>(step.allocations[action.what].size));
    } else {
      actions.push_back((action.kind == StepAction::Kind::free ? -1 : kKept) - std::int64_t{action.what});
    }
  }
  return actions;
}

Actions program_actions(const StepProgram& program, const RecordedSlots& slots) {
  Actions actions;
  std::map<std::uint32_t, std::int64_t> owner;
  std::int64_t allocated = 0;
  for (const MemoryOp& op : program.ops) {
    if (op.kind == MemoryOpKind::ensure) continue;
    if (op.kind != MemoryOpKind::free) {
      owner[op.slot] = allocated++;
      actions.push_back(static_cast<std::int64_t>(op.size));
    } else if (op.slot < slots.all()) {
      actions.push_back(kKept - std::int64_t{op.slot - slots.built});
    } else {
      actions.push_back(-1 - owner[op.slot]);
    }
  }
  return actions;
}

struct Expected {
  const char* recording;
  std::size_t shapes;
  std::size_t loops;
  std::size_t extras;  ///< as counted in the recording by hand
  std::uint32_t kept;
};

void PrintTo(const Expected& expected, std::ostream* out) { *out << expected.recording; }

class RecordedFit : public testing::TestWithParam<Expected> {};

TEST_P(RecordedFit, GivesEveryRecordedStepBack) {
  const Expected& expected = GetParam();
  const auto run = recorded_run(expected.recording);
  if (!run) GTEST_SKIP() << expected.recording << " is not there (../shared/data)";
  const FittedModel fitted = fit_model({*run}, expected.recording);
  EXPECT_EQ(fitted.spec.shapes.size(), expected.shapes);
  EXPECT_EQ(fitted.spec.loops.size(), expected.loops);
  EXPECT_EQ(fitted.spec.extras.size(), expected.extras);
  EXPECT_EQ(fitted.spec.kept, expected.kept);

  const RecordedModel model(fitted.spec);
  const RecordedSlots slots(fitted.spec);
  std::size_t compared = 0;
  for (std::size_t shape = 0; shape < fitted.spec.shapes.size(); ++shape) {
    const StepRecord* last = nullptr;  // the last visit of the shape
    for (const StepRecord& step : run->steps) {
      if (step.mark.label == fitted.shape_labels[shape]) last = &step;
    }
    ASSERT_NE(last, nullptr);
    if (last == &run->steps[0]) continue;  // visited once, as the first step of the process
    const StepParameters& asked = last->mark.parameters;
    Point point;
    for (const Parameter& parameter : fitted.spec.parameters)
      point.push_back(asked.scalars.at(parameter.name));
    auto fields = asked.lists;
    if (!fitted.spec.item_kinds.empty()) {  // the field that was found by kind
      for (const std::string& kind : asked.words.at("tasks")) {
        fields[fitted.spec.fields.back()].push_back(kind == "T1" ? 1 : kind == "T2" ? 3 : 4);
      }
    }
    const StepProgram program = model.recorded_step(shape, model.conditions_of(point, fields));
    const Actions simulated = program_actions(program, slots);
    const Actions recorded = recorded_actions(*last);
    EXPECT_EQ(simulated.size(), recorded.size()) << fitted.shape_labels[shape];
    std::size_t different = 0;
    for (std::size_t i = 0; i < std::min(simulated.size(), recorded.size()); ++i) {
      if (simulated[i] == recorded[i] || ++different > 5) continue;
      ADD_FAILURE() << fitted.shape_labels[shape] << ", action " << i << ": " << simulated[i]
                    << " in place of " << recorded[i];
    }
    ++compared;
  }
  EXPECT_GE(compared + 1, expected.shapes);
}

INSTANTIATE_TEST_SUITE_P(
    Recordings, RecordedFit,
    testing::Values(Expected{"lstm_fit", 5, 0, 24, 4}, Expected{"gpt2_fit", 7, 0, 299, 148},
                    Expected{"bert_fit", 6, 0, 407, 202}, Expected{"resnet_fit", 6, 0, 164, 161},
                    Expected{"generate_fit", 6, 1, 1, 0}, Expected{"sr_dual", 8, 0, 376, 188},
                    Expected{"hetero_fit", 8, 4, 507, 252}),
    [](const auto& one) { return std::string(one.param.recording); });

// Recorded are 22, 22 and 19 refusals, so 21; without a recording under pressure 21 as
// well.
TEST(FittedModels, LearnHowOftenAWorkspaceIsAskedFor) {
  const auto settled = recorded_run("sr_dual");
  const auto plain = recorded_run("sr_cap.cap4g");
  const auto expandable = recorded_run("sr_cap.cap4g_expand");
  if (!settled || !plain || !expandable) GTEST_SKIP() << "sr_cap is not there (../shared/data)";
  EXPECT_EQ(fit_model({*settled}, "sr").refusal_chains, 0U);
  const FittedModel fitted = fit_model({*settled, *plain}, "sr");
  EXPECT_EQ(fitted.refusal_chains, 3U);
  EXPECT_EQ(fitted.spec.workspace_refusals, 21U);
  EXPECT_EQ(fit_model({*settled, *expandable}, "sr").spec.workspace_refusals, 23U);  // (28 + 28 + 7 + 28) / 4
}

// The steps of sr_cap alone do not align; that must be said.
TEST(FittedModels, StepsThatDoNotAlignAreRefused) {
  const auto run = recorded_run("sr_cap.cap4g");
  if (!run) GTEST_SKIP() << "sr_cap is not there (../shared/data)";
  try {
    fit_model({*run}, "sr");
    ADD_FAILURE() << "a model was made";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).find("the recorded steps cannot be merged into one program: "), 0U);
  }
}

TEST(FittedModels, AreTheSameWhenReadBack) {
  const auto run = recorded_run("lstm_fit");
  ASSERT_TRUE(run);
  RecordedSpec spec = fit_model({*run}, "lstm").spec;
  spec.time = {0.005, 0.003, {{spec.main_product, 2e-6}}};
  const Json json = parse_json(model_file_text(recorded_model_json(spec)), "x");
  EXPECT_EQ(read_recorded_spec(json, "x: "), spec);
}

TEST(FittedModels, DamageIsFound) {
  const auto run = recorded_run("lstm_fit");
  ASSERT_TRUE(run);
  const Json good = recorded_model_json(fit_model({*run}, "lstm").spec);
  for (const auto& [key, value] : good["data"].items()) {
    Json bad = good;
    bad["data"].erase(key);
    if (key == "segments") {  // which models made before have not
      EXPECT_TRUE(read_recorded_spec(bad, "x: ").segments.empty());
    } else {
      EXPECT_THROW(read_recorded_spec(bad, "x: "), InputError) << key;
    }
    bad = good;
    bad["data"][key] = "broken";
    EXPECT_THROW(RecordedModel(read_recorded_spec(bad, "x: ")), InputError) << key;
  }
  Json bad = good;
  bad["data"]["program"] = good["data"]["program"].get<std::string>() + " f99999";
  EXPECT_THROW(RecordedModel(read_recorded_spec(bad, "x: ")), InputError);
}

// A parameter that never moves makes forms indistinguishable.
TEST(FittedModels, AParameterThatNeverMovedIsRefused) {
  const auto run = recorded_run("gpt2_var");
  if (!run) GTEST_SKIP() << "gpt2_var is not there (../shared/data)";
  const FittedModel fitted = fit_model({*run}, "gpt2");
  EXPECT_EQ(std::count_if(fitted.warnings.begin(), fitted.warnings.end(),
                          [](const std::string& warning) {
                            return warning.find("batch was 8 in every recorded step") == 0;
                          }),
            1);
  const RecordedModel model(fitted.spec);
  PredictionQuestion question(model);
  question.set("batch=8");  // what was recorded is known
  try {
    question.set("batch=16");
    ADD_FAILURE() << "batch 16 was answered";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "--set batch: batch was 8 in every recorded step, so nothing is known of 16. Record "
                 "steps at two or more values of batch and fit again.");
  }
}

}  // namespace
}  // namespace vramlab
