#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "recordings/snapshot/history.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using Action = TraceEntry::Action;

TraceEntry history_entry(Action action, Address address, Bytes size) {
  TraceEntry made;
  made.action = action;
  made.address = address;
  made.size = size;
  return made;
}

/// A snapshot with this history, and with final segments that hold `left` bytes.
TorchSnapshot snapshot_of(const std::vector<TraceEntry>& trace, Bytes left) {
  TorchSnapshot snapshot;
  snapshot.traces = {trace};
  snapshot.segments.emplace_back();
  snapshot.segments[0].total_size = left;
  return snapshot;
}

std::string refusal(const TorchSnapshot& snapshot, int device = 0) {
  try {
    require_whole_history(snapshot, device);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

const std::vector<TraceEntry> kWholeTrace{
    history_entry(Action::segment_alloc, 0, 100), history_entry(Action::segment_map, 100, 20),
    history_entry(Action::segment_unmap, 100, 5), history_entry(Action::segment_free, 0, 100)};

TEST(WholeHistory, UndoingItGivesTheStart) {
  EXPECT_EQ(reserved_at_start(snapshot_of(kWholeTrace, 15), 0), 0);
  EXPECT_EQ(reserved_at_start(snapshot_of(kWholeTrace, 40), 0), 25);
  TorchSnapshot other = snapshot_of(kWholeTrace, 15);
  other.segments[0].device = 1;
  EXPECT_EQ(reserved_at_start(other, 0), -15);
}

TEST(WholeHistory, IsAccepted) { EXPECT_EQ(refusal(snapshot_of(kWholeTrace, 15)), "accepted"); }

TEST(WholeHistory, OneThatBeganLateIsRefused) {
  EXPECT_THAT(refusal(snapshot_of(kWholeTrace, 40)),
              HasSubstr("/device_traces/0: starts with 25 B already reserved"));
}

TEST(WholeHistory, OneThatLacksEntriesIsRefused) {
  EXPECT_THAT(refusal(snapshot_of(kWholeTrace, 10)),
              HasSubstr("/device_traces/0: acquires 5 B more than it releases"));
}

TEST(WholeHistory, ADeviceWithoutOneIsRefused) {
  for (const int device : {-1, 1}) {
    EXPECT_THAT(refusal(snapshot_of(kWholeTrace, 15), device), HasSubstr("holds no history"));
  }
  EXPECT_THAT(refusal(snapshot_of({}, 15)), HasSubstr("holds no history"));
}

TEST(WholeHistory, MemoryIsNotAcquiredTwice) {
  for (const Address again : {60u, 100u, 119u}) {
    const std::vector<TraceEntry> trace{history_entry(Action::segment_alloc, 100, 20),
                                        history_entry(Action::segment_map, again, 50)};
    EXPECT_EQ(refusal(snapshot_of(trace, 70)), "/device_traces/0/1: acquires memory that is held already.")
        << again;
  }
}

TEST(WholeHistory, MemoryIsNotReleasedTwice) {
  const std::vector<TraceEntry> trace{
      history_entry(Action::segment_map, 100, 20), history_entry(Action::segment_map, 120, 20),
      history_entry(Action::segment_unmap, 110, 20),  // the end of one and the beginning of the other
      history_entry(Action::segment_unmap, 105, 10),  // its second half is gone
  };
  EXPECT_EQ(refusal(snapshot_of(trace, 10)), "/device_traces/0/3: releases memory that is not held.");
}

TEST(WholeHistory, RangesDoNotPassTheEndOfAllAddresses) {
  const std::vector<TraceEntry> trace{history_entry(Action::segment_alloc, ~Address{0} - 5, 10)};
  EXPECT_EQ(refusal(snapshot_of(trace, 10)), "/device_traces/0/0: acquires memory that is held already.");
}

// A segment for 12 MiB has 12 MiB (R2.2). Where less was free the card had what was held and free; where
// there was enough, a limit lay below what would have been held.
TEST(RecordedLimit, FollowsFromWhatWasHeldAndFreeAtEachFailure) {
  const std::vector<TraceEntry> trace{
      history_entry(Action::segment_alloc, 0, 20_MiB), history_entry(Action::oom, 4_MiB, 12_MiB),
      history_entry(Action::segment_alloc, 20_MiB, 2_MiB), history_entry(Action::oom, 3_MiB, 12_MiB)};
  const RecordedLimit full = recorded_limit(snapshot_of(trace, 22_MiB), 0);
  EXPECT_EQ(full.room, 24_MiB);
  EXPECT_EQ(full.limit, std::nullopt);
  const RecordedLimit limited =
      recorded_limit(snapshot_of({trace[0], history_entry(Action::oom, 30_MiB, 12_MiB)}, 20_MiB), 0);
  EXPECT_EQ(limited.room, std::nullopt);
  EXPECT_EQ(limited.limit, 32_MiB - 1);
}

}  // namespace
}  // namespace vramlab
