#include "fit/step_record.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/fit/recorded_run.hpp"

namespace vramlab {
namespace {

std::size_t count(const StepRecord& step, Fate fate) {
  return static_cast<std::size_t>(std::count_if(step.allocations.begin(), step.allocations.end(),
                                                [&](const auto& one) { return one.fate == fate; }));
}

// lstm_fit keeps 24 extras (22 of Adam, two of 32 MiB) and 4 gradients, and
// allocates 45, 45, 47, 61 and 61 times a settled step.
TEST(StepRecord, FirstStepsKeepOptimizerStateAndWorkspaces) {
  const auto run = recorded_run("lstm_fit");
  ASSERT_TRUE(run);
  ASSERT_EQ(run->steps.size(), 10U);
  EXPECT_EQ(count(run->steps[0], Fate::forever), 24U);
  EXPECT_EQ(std::count_if(run->steps[0].allocations.begin(), run->steps[0].allocations.end(),
                          [](const auto& one) { return one.fate == Fate::forever && one.size == 33554432; }),
            2);
  std::vector<std::size_t> allocations;
  for (std::size_t step = 1; step < run->steps.size(); step += 2) {
    allocations.push_back(run->steps[step].allocations.size());
    EXPECT_EQ(count(run->steps[step], Fate::kept), 4U) << step;
    EXPECT_EQ(count(run->steps[step], Fate::forever), 0U) << step;
  }
  EXPECT_EQ(allocations, (std::vector<std::size_t>{45, 45, 47, 61, 61}));
}

// "With gradients named by rank the second step of a shape equals the first in sizes and order."
TEST(StepRecord, TheSecondStepOfAShapeEqualsTheFirst) {
  const auto run = recorded_run("lstm_fit");
  ASSERT_TRUE(run);
  for (std::size_t step = 2; step < run->steps.size(); step += 2) {
    EXPECT_EQ(run->steps[step].actions, run->steps[step + 1].actions) << step;
  }
}

using Chains = std::vector<std::vector<std::size_t>>;

Chains refusals(const RecordedRun& run) {
  Chains chains;
  for (const StepRecord& step : run.steps) {
    if (step.mark.oom) {
      auto& lengths = chains.emplace_back();
      for (const RefusedRequests& row : step.refusals) lengths.push_back(row.sizes.size());
    } else {
      EXPECT_TRUE(step.refusals.empty()) << step.mark.label;
    }
  }
  return chains;
}

// Recorded are 66 and 94 refused requests in three failed steps each; one of each step is
// the OOM that the program saw.
TEST(StepRecord, CountsRefusedRequestsInARow) {
  const auto plain = recorded_run("sr_cap.cap4g");
  const auto expandable = recorded_run("sr_cap.cap4g_expand");
  if (!plain || !expandable) GTEST_SKIP() << "sr_cap is not there (../shared/data)";
  EXPECT_EQ(refusals(*plain), (Chains{{22}, {22}, {19}}));
  EXPECT_EQ(refusals(*expandable), (Chains{{28}, {28, 7}, {28}}));
}

// gpt2_cap fails at tensors, five times; no library asks for workspaces there.
TEST(StepRecord, ATensorThatFailsAStepIsNoRefusedWorkspace) {
  const auto run = recorded_run("gpt2_cap.cap");
  if (!run) GTEST_SKIP() << "gpt2_cap is not there (../shared/data)";
  EXPECT_EQ(refusals(*run), (Chains{{}, {}, {}, {}, {}}));
}

TEST(StepRecord, RefusesAHistoryThatBeginsInTheMiddle) {
  TorchSnapshot snapshot;
  snapshot.traces = {
      {{.address = 512, .size = 512, .time_us = 1, .action = TraceEntry::Action::free_requested}}};
  EXPECT_THROW(cut_at_marks(snapshot, {{.time_us = 2, .is_step = true}}, "x"), InputError);
}

// What such a mark says of its parameters would replace what is known of them.
TEST(StepRecord, RefusesAStepWithoutHistory) {
  TorchSnapshot snapshot;
  snapshot.traces = {{{.address = 512, .size = 512, .time_us = 1, .action = TraceEntry::Action::alloc}}};
  try {
    cut_at_marks(snapshot, {{.time_us = 2, .is_step = true}, {.time_us = 3, .is_step = true}}, "x");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "x: no entry of the history lies between mark 2, a step, and the one before it. Are these "
                 "the marks of this snapshot?");
  }
}

TEST(StepRecord, RefusesMarksWithoutASteps) {
  TorchSnapshot snapshot;
  snapshot.traces = {{{.address = 512, .size = 512, .time_us = 1, .action = TraceEntry::Action::alloc}}};
  EXPECT_THROW(cut_at_marks(snapshot, {{.time_us = 2}}, "x"), InputError);
}

/// A run of steps that are all said to have batch 8, with one allocation of each size.
RecordedRun said_to_be_alike(const std::vector<Bytes>& sizes) {
  RecordedRun run;
  for (const Bytes size : sizes) {
    StepRecord step;
    step.mark.is_step = true;
    step.mark.parameters.scalars = {{"batch", 8}};
    step.allocations.push_back({.size = size, .fate = Fate::freed, .actions = 9});
    step.allocations.push_back({.size = 512 * size, .fate = Fate::freed, .actions = 2});  // a workspace
    step.actions.push_back({StepAction::Kind::allocate, 0});
    run.steps.push_back(std::move(step));
  }
  return run;
}

TEST(ChosenSteps, StepsOfOneShapeThatDifferAreNamed) {
  constexpr Bytes kGiB = Bytes{1} << 30;
  std::vector<std::string> warnings;
  const std::vector<RecordedRun> unlike{said_to_be_alike({kGiB, kGiB, 2 * kGiB, 4 * kGiB})};
  choose_steps(unlike, warnings);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0],
            "steps 2 and 3 both have batch=8 and allocate 1.0 GiB and 2.0 GiB, and 1 more pairs differ; is a "
            "parameter missing? Only the later one of each is fitted.");
  warnings.clear();
  const std::vector<RecordedRun> nearly{said_to_be_alike({1000, 1009, 1000})};
  choose_steps(nearly, warnings);
  EXPECT_TRUE(warnings.empty());
}

}  // namespace
}  // namespace vramlab
