#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recordings/logs/oom_message.hpp"
#include "recordings/snapshot/history.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using Action = TraceEntry::Action;
using Kind = TraceStep::Kind;

TraceEntry step_entry(Action action, Address address, Bytes size = 512, StreamId stream = 0) {
  TraceEntry made;
  made.action = action;
  made.address = address;
  made.size = size;
  made.stream = stream;
  return made;
}

std::vector<std::string> show(const std::vector<TraceEntry>& trace, const std::vector<std::size_t>& cuts) {
  constexpr std::array kNames{"allocation", "failure", "free", "deferred free", "none"};
  std::vector<std::string> steps;
  for (const TraceStep& step : cut_into_steps(trace, cuts)) {
    steps.push_back(std::string(kNames[static_cast<std::size_t>(step.kind)]) + ' ' +
                    std::to_string(step.first) + ' ' + std::to_string(step.action) + ' ' +
                    std::to_string(step.end));
  }
  return steps;
}

const std::vector<TraceEntry> kTrace{
    step_entry(Action::segment_alloc, 100),   // 0
    step_entry(Action::alloc, 100),           // 1
    step_entry(Action::alloc, 200),           // 2
    step_entry(Action::free_requested, 100),  // 3
    step_entry(Action::free_completed, 100),  // 4
    step_entry(Action::free_requested, 200),  // 5, waits
    step_entry(Action::free_completed, 200),  // 6
    step_entry(Action::segment_free, 100),    // 7
    step_entry(Action::oom, 0),               // 8
    step_entry(Action::snapshot, 0),          // 9
};

TEST(TraceSteps, AnActionOwnsWhatLedToIt) {
  EXPECT_THAT(show(kTrace, {}), ElementsAre("allocation 0 1 2", "allocation 2 2 3", "free 3 3 5",
                                            "free 5 5 7", "failure 7 8 9", "none 9 10 10"));
}

TEST(TraceSteps, AFreeThatCompletesLaterIsDeferred) {
  const std::vector<TraceEntry> trace{step_entry(Action::free_requested, 1),
                                      step_entry(Action::free_requested, 2),
                                      step_entry(Action::free_completed, 1),
                                      step_entry(Action::free_completed, 2), step_entry(Action::alloc, 1)};
  EXPECT_THAT(show(trace, {}), ElementsAre("deferred free 0 0 1", "deferred free 1 1 2", "allocation 2 4 5"));
}

TEST(TraceSteps, NoStepReachesOverACut) {
  EXPECT_THAT(show(kTrace, {0, 1, 8, 8, 10}),
              ElementsAre("none 0 1 1", "allocation 1 1 2", "allocation 2 2 3", "free 3 3 5", "free 5 5 7",
                          "none 7 8 8", "failure 8 8 9", "none 9 10 10"));
}

std::vector<std::string> show(const std::vector<PoolUse>& uses) {
  std::vector<std::string> shown;
  for (const PoolUse& use : uses) {
    shown.push_back('(' + std::to_string(use.pool.first) + ") on " + std::to_string(use.stream) + ": " +
                    std::to_string(use.first) + '-' + std::to_string(use.last));
  }
  return shown;
}

// Spec 16.5, pitfall 1: the same address was a default segment of another stream first.
TEST(PoolUses, OnlyTheLastSegmentAtAnAddressCounts) {
  TorchSnapshot snapshot;
  snapshot.traces = {{
      step_entry(Action::segment_alloc, 1000, 100, 7), step_entry(Action::alloc, 1000, 8, 7),
      step_entry(Action::segment_free, 1000, 100, 7), step_entry(Action::segment_alloc, 1000, 100, 9),
      step_entry(Action::alloc, 1000, 8, 9),  // 4
      step_entry(Action::alloc, 500, 8, 0),   // on another stream, beside it
      step_entry(Action::alloc, 1008, 8, 9),  // 6
      step_entry(Action::alloc, 600, 8, 9),   // the capture is over
      step_entry(Action::alloc, 1016, 8, 9),  // 8: another one shares the pool
  }};
  SnapshotSegment segment;
  segment.address = 1000;
  segment.total_size = 100;
  segment.pool = {1, 0};
  snapshot.segments = {segment};
  EXPECT_THAT(show(find_pool_uses(snapshot, 0)), ElementsAre("(1) on 9: 4-6", "(1) on 9: 8-8"));
}

// One that lies right before the pool's.
TEST(PoolUses, AReleaseOfDefaultSegmentsEndsThem) {
  TorchSnapshot snapshot;
  snapshot.traces = {{step_entry(Action::segment_alloc, 1000, 100), step_entry(Action::alloc, 1000),
                      step_entry(Action::segment_free, 900, 100), step_entry(Action::alloc, 1050)}};
  SnapshotSegment segment;
  segment.address = 1000;
  segment.total_size = 100;
  segment.pool = {1, 0};
  snapshot.segments = {segment};
  EXPECT_THAT(show(find_pool_uses(snapshot, 0)), ElementsAre("(1) on 0: 1-1", "(1) on 0: 3-3"));
}

TEST(PoolUses, AnEntryThatNamesItsPoolIsBelieved) {
  TorchSnapshot snapshot;
  snapshot.pools.push_back({4, 0});
  snapshot.traces = {
      {step_entry(Action::alloc, 1), step_entry(Action::alloc, 2), step_entry(Action::alloc, 3)}};
  snapshot.traces[0][0].pool = 0;
  snapshot.traces[0][1].pool = 1;
  snapshot.traces[0][2].pool = 1;
  EXPECT_THAT(show(find_pool_uses(snapshot, 0)), ElementsAre("(4) on 0: 1-2"));
}

const std::string kMessage =
    "CUDA out of memory. Tried to allocate 1.05 GiB. GPU 0 has a total capacity of 79.18 GiB of which 43.56 "
    "GiB is "
    "free. Process 1720 has 9.48 GiB memory in use. 8.79 GiB allowed; Of the allocated memory 8.14 GiB is "
    "allocated "
    "by PyTorch, and 264.20 MiB is reserved by PyTorch but unallocated. If reserved";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

TEST(OomFigures, FiguresOfOtherProcessesAreNotCompared) {
  EXPECT_TRUE(compare_oom_figures(kMessage, kMessage).empty());
  EXPECT_TRUE(
      compare_oom_figures(kMessage, replaced(kMessage, "Process 1720 has 9.48 GiB memory in use. ", ""))
          .empty());
  EXPECT_TRUE(compare_oom_figures(kMessage, replaced(kMessage, "43.56 GiB is", "1.00 GiB is")).empty());
}

TEST(OomFigures, EveryFigureOfTheAllocatorIsCompared) {
  const std::vector<std::array<std::string, 3>> changes{
      {"tried to allocate", "1.05", "1.06"},
      {"total capacity", "79.18", "79.19"},
      {"allowed", "8.79", "8.80"},
      {"allocated by PyTorch", "8.14", "8.15"},
      {"in private pools", "PyTorch, and", "PyTorch, with 2.00 MiB allocated in private pools, and"},
      {"reserved but unallocated", "264.20", "264.21"},
  };
  for (const auto& [figure, what, by] : changes) {
    const auto differences = compare_oom_figures(kMessage, replaced(kMessage, what, by));
    ASSERT_EQ(differences.size(), 1u) << figure;
    EXPECT_EQ(differences[0].figure, figure);
  }
}

TEST(OomFigures, WhatWasCutOffIsNotCompared) {
  const std::string cut = kMessage.substr(0, kMessage.find("8.14"));
  EXPECT_TRUE(compare_oom_figures(cut, kMessage).empty());
}

}  // namespace
}  // namespace vramlab
