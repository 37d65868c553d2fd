// Marks that a snapshot itself holds, and memory held when it was taken.
#include "recordings/snapshot/annotations.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recordings/snapshot/annotated_stacks.hpp"
#include "recordings/snapshot/held_state.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;

TorchSnapshot snapshot_at(const std::vector<std::int64_t>& times) {
  TorchSnapshot snapshot;
  snapshot.traces.resize(1);
  for (const std::int64_t time : times) {
    TraceEntry entry;
    entry.action = TraceEntry::Action::alloc;
    entry.time_us = time;
    snapshot.traces[0].push_back(entry);
  }
  return snapshot;
}

std::vector<std::string> texts(const std::vector<PlacedMark>& marks) {
  std::vector<std::string> list;
  for (const PlacedMark& mark : marks) list.push_back(std::to_string(mark.entry) + ' ' + mark.label);
  return list;
}

TEST(PlacedMarks, AMarkComesBehindTheEntriesOfItsMicrosecond) {
  const TorchSnapshot snapshot = snapshot_at({1, 2, 2, 5});
  EXPECT_THAT(texts(place_marks(snapshot.traces[0], {{.time_us = 0, .label = "start"},
                                                     {.time_us = 2, .label = "step 1"},
                                                     {.time_us = 9, .label = "step 2"}})),
              ElementsAre("0 start", "3 step 1", "4 step 2"));
}

// external_annotations of torch 2.6 and newer: {name, stage, device, time_us}. A stretch is named by the
// innermost.
TEST(OwnMarks, AreTheExternalAnnotations) {
  TorchSnapshot snapshot = snapshot_at({1, 2, 3, 4, 5, 6});
  snapshot.annotations = {{"step 1", true, 0, 2},  {"forward", true, 0, 3}, {"forward", false, 0, 3},
                          {"step 1", false, 0, 4}, {"other", true, 1, 5},   {"step 2", true, 0, 6}};
  EXPECT_THAT(texts(own_marks(snapshot, 0)), ElementsAre("1 before step 1", "2 step 1", "3 forward",
                                                         "4 step 1", "5 before step 2", "6 step 2"));
}

// Names of the stack of an entry, the outermost first.
std::vector<std::string> names_of(const TorchSnapshot& snapshot, std::size_t entry) {
  std::vector<std::string> names;
  for (const std::uint32_t frame : snapshot.stacks[snapshot.traces[0][entry].stack])
    names.insert(names.begin(), snapshot.frames[frame].function);
  return names;
}

// Modules within record_function; whole steps, what the optimizer notes of itself, and backward are none.
TEST(AnnotatedStacks, AreTheAnnotationsThatAreOpen) {
  TorchSnapshot snapshot = snapshot_at({1, 2, 3, 4, 5, 6});
  snapshot.annotations = {{"ProfilerStep#3", true, 0, 1},  {"model", true, 0, 2},
                          {"layer 0", true, 0, 3},         {"layer 0", false, 0, 3},
                          {"model", false, 0, 4},          {"## backward ##", true, 0, 5},
                          {"## backward ##", false, 0, 5}, {"Optimizer.step#SGD.step", true, 0, 6}};
  EXPECT_TRUE(name_stacks(snapshot));
  EXPECT_THAT(names_of(snapshot, 0), ElementsAre());
  EXPECT_THAT(names_of(snapshot, 1), ElementsAre("(program)", "model"));
  EXPECT_THAT(names_of(snapshot, 2), ElementsAre("(program)", "model", "layer 0"));
  EXPECT_THAT(names_of(snapshot, 3), ElementsAre("(program)", "model"));
  EXPECT_THAT(names_of(snapshot, 4), ElementsAre());
  EXPECT_THAT(names_of(snapshot, 5), ElementsAre());
}

TEST(AnnotatedStacks, AreElseTheUserMetadataAndNeverInTheWayOfStacks) {
  TorchSnapshot snapshot = snapshot_at({1, 2, 3});
  snapshot.labels = {"", "model.layers.0", "torch.compile 0/0"};
  snapshot.traces[0][1].label = 1;
  snapshot.traces[0][2].label = 2;
  TorchSnapshot with_stacks = snapshot;
  with_stacks.frames = {{"forward", "model.py", 7}};
  with_stacks.stacks.push_back({0});
  with_stacks.traces[0][0].stack = 1;
  EXPECT_FALSE(name_stacks(with_stacks));
  EXPECT_TRUE(name_stacks(snapshot));
  EXPECT_THAT(names_of(snapshot, 1), ElementsAre("(program)", "model", "model.layers.0"));
  EXPECT_THAT(names_of(snapshot, 2), ElementsAre());
  TorchSnapshot optimizer = snapshot_at({1, 2});
  optimizer.annotations = {{"Optimizer.step#SGD.step", true, 0, 1}};
  EXPECT_FALSE(name_stacks(optimizer));
}

// torch.cuda.memory._set_memory_metadata() labels every entry that follows.
TEST(OwnMarks, AreElseTheLabelsOfTheEntries) {
  TorchSnapshot snapshot = snapshot_at({1, 1, 1, 1, 1});
  snapshot.labels = {"", "epoch 1", "epoch 2"};
  for (std::size_t i = 1; i < 3; ++i) snapshot.traces[0][i].label = 1;
  for (std::size_t i = 3; i < 5; ++i) snapshot.traces[0][i].label = 2;
  EXPECT_THAT(texts(own_marks(snapshot, 0)), ElementsAre("1 before epoch 1", "3 epoch 1", "5 epoch 2"));
  EXPECT_THAT(texts(own_marks(snapshot_at({1, 2}), 0)), ElementsAre());
}

// A plain segment goes back as a whole; of an expandable one every free page of 20 MiB does (R5.9).
TEST(HeldState, TellsLiveIdleAndReturnableMemoryOfEachSegment) {
  using State = SnapshotBlock::State;
  TorchSnapshot snapshot;
  const auto add = [&](Address base, Bytes size, bool expandable, std::vector<SnapshotBlock> blocks) {
    SnapshotSegment segment;
    segment.address = base;
    segment.total_size = size;
    segment.large = true;
    segment.expandable = expandable;
    segment.blocks = std::move(blocks);
    snapshot.segments.push_back(segment);
  };
  add(0, 60_MiB, false,
      {{0, 40_MiB, 0, State::active_allocated, 0}, {40_MiB, 20_MiB, 0, State::inactive, 0}});
  add(1_GiB, 100_MiB, false, {{1_GiB, 100_MiB, 0, State::inactive, 0}});
  add(2_GiB, 80_MiB, true,
      {{2_GiB, 10_MiB, 0, State::active_pending_free, 0}, {2_GiB + 10_MiB, 70_MiB, 0, State::inactive, 0}});
  const HeldState held = held_state(snapshot, 0);
  EXPECT_EQ(held.total.reserved, 240_MiB);
  EXPECT_EQ(held.total.live, 50_MiB);
  EXPECT_EQ(held.total.live_blocks, 2u);
  EXPECT_EQ(held.total.idle(), 190_MiB);
  EXPECT_EQ(held.total.returnable, 160_MiB);
  EXPECT_EQ(held.total.largest_free, 100_MiB);
  EXPECT_EQ(held.segments.at(0).returnable, 0u);
  EXPECT_EQ(held.segments.at(1).returnable, 100_MiB);
  EXPECT_EQ(held.segments.at(2).returnable, 60_MiB);
}

}  // namespace
}  // namespace vramlab
