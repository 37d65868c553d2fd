// R3.4 to R3.9: record_stream, deferred frees, and vector V4.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using Action = AllocatorEvent::Action;
constexpr StreamId kA = 11;
constexpr StreamId kB = 22;
constexpr StreamId kC = 33;

// V4
TEST(RecordStream, DefersTheFreeUntilTheOtherStreamIsDone) {
  Rig rig;
  History history;
  const BlockId a = rig.take(4_MiB, kA);
  rig.allocator.record_stream(a, kB);
  rig.give(a);
  EXPECT_EQ(rig.allocated(), 0u);
  EXPECT_EQ(rig.active(), 4_MiB);
  EXPECT_EQ(rig.requested(), 4_MiB);
  EXPECT_EQ(rig.inactive_split_bytes(), 16_MiB);
  EXPECT_EQ(rig.allocator.segments()[0].blocks[0].state, BlockState::pending_free);
  rig.expect_sound();

  const BlockId b = rig.take(4_MiB, kA);
  EXPECT_EQ(rig.segment_count(), 1);
  EXPECT_EQ(rig.allocator.address_of(b), rig.allocator.segments()[0].base + 4_MiB);

  rig.allocator.finish_events();
  EXPECT_EQ(rig.active(), 8_MiB);  // nothing is processed before the next allocation
  rig.allocator.set_listener(&history);
  rig.take(1_MiB + 512, kA);
  EXPECT_THAT(history.actions(), ElementsAre(Action::free_completed, Action::alloc));
  EXPECT_EQ(rig.active(), 4_MiB + 1_MiB + 512);
  rig.expect_sound();
}

// R3.7
TEST(RecordStream, IgnoresTheBlocksOwnStreamAndRepetitions) {
  Rig rig;
  const BlockId a = rig.take(4_MiB, kA);
  rig.allocator.record_stream(a, kA);
  rig.give(a);
  EXPECT_EQ(rig.active(), 0u);

  const BlockId b = rig.take(4_MiB, kA);
  rig.allocator.record_stream(b, kB);
  rig.allocator.record_stream(b, kB);
  rig.allocator.record_stream(b, kC);
  rig.give(b);
  EXPECT_EQ(rig.allocator.state().events.in_order().size(), 2u);
  EXPECT_THROW(rig.allocator.record_stream(b, kB), InternalError);

  const BlockId c = rig.take(4_MiB, kA);
  rig.allocator.record_stream(c, kB);
  rig.allocator.record_stream(c, kB);
  rig.give(c);
  EXPECT_EQ(rig.allocator.state().events.in_order().size(), 3u);
}

// R3.6
TEST(RecordStream, KeepsPendingBlocksFromBeingMerged) {
  Rig rig;
  const BlockId a = rig.take(2_MiB, kA);
  const BlockId b = rig.take(2_MiB, kA);
  const BlockId c = rig.take(2_MiB, kA);
  rig.allocator.record_stream(b, kB);
  rig.give_all({a, b, c});
  EXPECT_EQ(rig.inactive_splits(), 2);
  rig.allocator.finish_events(b);
  rig.allocator.process_events();
  EXPECT_EQ(rig.inactive_splits(), 0);
  EXPECT_EQ(rig.allocator.segments()[0].blocks.size(), 1u);
  rig.expect_sound();
}

// R3.8: a stream's queue stops at its first unfinished event.
TEST(RecordStream, CompletesFreesOfAStreamInTheirOrder) {
  Rig rig;
  const BlockId first = rig.take(2_MiB, kA);
  const BlockId second = rig.take(2_MiB, kA);
  const BlockId other = rig.take(2_MiB, kA);
  rig.allocator.record_stream(first, kB);
  rig.allocator.record_stream(second, kB);
  rig.allocator.record_stream(other, kC);
  rig.give_all({first, second, other});
  rig.allocator.finish_events(second);
  rig.allocator.finish_events(other);
  rig.allocator.process_events();
  EXPECT_EQ(rig.active(), 4_MiB);  // only the one on the other stream is done
  rig.allocator.finish_events(first);
  rig.allocator.process_events();
  EXPECT_EQ(rig.active(), 0u);
  EXPECT_THROW(rig.allocator.finish_events(first), InternalError);
}

// R3.4: one event on each recorded stream, and all must be done.
TEST(RecordStream, WaitsForEveryStream) {
  Rig rig;
  const BlockId a = rig.take(2_MiB, kA);
  const BlockId b = rig.take(2_MiB, kA);
  rig.allocator.record_stream(a, kB);
  rig.allocator.record_stream(b, kB);
  rig.allocator.record_stream(b, kC);
  rig.give_all({a, b});
  rig.allocator.finish_events(b);
  rig.allocator.process_events();  // b's event on stream B stands behind a's
  EXPECT_EQ(rig.active(), 4_MiB);
  rig.allocator.finish_events(a);
  rig.allocator.process_events();
  EXPECT_EQ(rig.active(), 0u);
}

// R4.8 a: a full release waits for everything.
TEST(RecordStream, IsOverAfterEmptyCache) {
  Rig rig;
  const BlockId a = rig.take(4_MiB, kA);
  rig.allocator.record_stream(a, kB);
  rig.give(a);
  rig.allocator.empty_cache();
  EXPECT_EQ(rig.reserved(), 0u);
}

// R4: there is no second search after the release, so the call fails although a block now fits; the
// next identical call succeeds (pytorch issue 189504).
TEST(RecordStream, CanMakeACallFailThatSucceedsTheNextTime) {
  Rig rig(20_MiB);
  rig.take(2_MiB);
  const BlockId a = rig.take(12_MiB);
  rig.allocator.record_stream(a, kB);
  rig.give(a);
  EXPECT_TRUE(rig.fails(12_MiB));
  EXPECT_FALSE(rig.fails(12_MiB));
}

// R3.9: freed in a capture, the block is parked; uses recorded in the capture are forgotten.
TEST(RecordStream, ParksFreesWhileACaptureIsOpen) {
  Rig rig;
  const BlockId before = rig.take(2_MiB);
  const BlockId within = rig.take(2_MiB);
  rig.allocator.record_stream(before, kB);
  const PoolId pool = rig.allocator.begin_capture(kA);
  rig.allocator.record_stream(within, kB);
  rig.give_all({before, within});
  rig.take(2_MiB);
  EXPECT_EQ(rig.active(), 6_MiB);
  rig.expect_sound();
  rig.allocator.end_capture(pool);
  rig.allocator.process_events();
  EXPECT_EQ(rig.active(), 4_MiB);  // `within` is free; `before` waits for an event now
  rig.allocator.finish_events();
  rig.allocator.process_events();
  EXPECT_EQ(rig.active(), 2_MiB);
  rig.expect_sound();
}

// R3.9: with the option, a parked block is free at the next malloc on its own stream, and only there.
TEST(RecordStream, GivesParkedBlocksBackOnTheirStreamWithinACapture) {
  Rig rig(80_GiB, "graph_capture_record_stream_reuse:True");
  const BlockId outside = rig.take(30_MiB, kC);
  const PoolId pool = rig.allocator.begin_capture(kA);
  const BlockId inside = rig.take(30_MiB, kA);
  const Address place = rig.allocator.address_of(inside);
  rig.allocator.record_stream(outside, kB);
  rig.allocator.record_stream(inside, kB);
  rig.give_all({outside, inside});
  EXPECT_EQ(rig.allocator.address_of(rig.take(30_MiB, kA)), place);
  EXPECT_NE(rig.allocator.address_of(rig.take(30_MiB, kA)), place);
  EXPECT_EQ(rig.active(), 90_MiB);  // `outside` is still parked
  rig.allocator.end_capture(pool);
  rig.expect_sound();
}

}  // namespace
}  // namespace vramlab
