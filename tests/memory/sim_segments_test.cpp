// The pretended card: memory accounting (R10.1 to R10.4), addresses (R10.7, R10.9) and times (R10.6).
#include "sim/memory/segments/sim_segments.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "sim/memory/segments/driver.hpp"
#include "sim/memory/segments/recorded_segments.hpp"
#include "sim/memory/segments/segment_source.hpp"

namespace vramlab {
namespace {

TEST(SimulatedCard, CountsContextOthersAndWhatIsTaken) {
  SimulatedCard card(85017493504);
  EXPECT_EQ(card.free(), 84465090560u);  // measured after opening a context
  EXPECT_TRUE(card.take(4_GiB));
  EXPECT_EQ(card.set_others(2_GiB), 2_GiB);
  EXPECT_EQ(card.free(), 84465090560u - 6_GiB);
  EXPECT_EQ(card.set_others(200_GiB), 84465090560u - 4_GiB);  // at most what is there
  EXPECT_EQ(card.free(), 0u);
  EXPECT_FALSE(card.take(1));
  card.give(4_GiB);
  EXPECT_EQ(card.free(), 4_GiB);
  EXPECT_THROW(card.give(1), InternalError);
  EXPECT_THROW(SimulatedCard(100_MiB), InputError);
  EXPECT_TRUE(card.open_context(500_MiB));
  EXPECT_FALSE(card.open_context(4_GiB));
  card.close_context(500_MiB);
  EXPECT_EQ(card.free(), 4_GiB);
}

// R10.1, R10.2
TEST(SimSegments, TakeWholePagesWhileTheyAreFree) {
  SimulatedCard card(10_MiB, 0);
  SimSegments segments(card);
  const auto small = segments.reserve(512);
  ASSERT_TRUE(small);
  EXPECT_EQ(segments.device_free(), 8_MiB);
  EXPECT_FALSE(segments.reserve(8_MiB + 1));
  EXPECT_EQ(segments.device_free(), 8_MiB);
  ASSERT_TRUE(segments.reserve(8_MiB));
  segments.release(*small);
  EXPECT_EQ(segments.device_free(), 2_MiB);
  EXPECT_THROW(segments.release(*small), InternalError);
}

TEST(SimSegments, MapAllOfACallOrNothing) {
  SimulatedCard card(50_MiB, 0);
  SimSegments segments(card);
  const Address base = segments.reserve_range(1_GiB, 20_MiB);
  EXPECT_EQ(segments.device_free(), 50_MiB);
  EXPECT_TRUE(segments.map(base, 40_MiB));
  EXPECT_FALSE(segments.map(base + 40_MiB, 20_MiB));
  EXPECT_EQ(segments.device_free(), 10_MiB);
  EXPECT_THROW(segments.release_range(base), InternalError);
  segments.unmap(base, 40_MiB);
  segments.release_range(base);
  EXPECT_EQ(segments.device_free(), 50_MiB);
  EXPECT_THROW(segments.map(base, 20_MiB), InternalError);
}

TEST(SimSegments, OfSeveralProcessesShareTheCard) {
  SimulatedCard card(100_MiB, 0);
  SimSegments first(card);
  {
    SimSegments second(card);
    ASSERT_TRUE(second.reserve(60_MiB));
    EXPECT_FALSE(first.reserve(60_MiB));
  }
  EXPECT_TRUE(first.reserve(60_MiB));  // the other process ended
}

// R10.7, the sequence of the driver test (recording h100-driver.json, sizes in MiB): the twelve placements in
// existing chunks are those of the recording relative to their chunk. New chunks lie elsewhere there.
TEST(DriverAddresses, PlaceWithinChunksLikeTheDriver) {
  DriverAddresses driver = DriverAddresses::of_training_process();
  const Address a = driver.take(2_MiB);   // the last 2 MiB of the newer chunk
  const Address b = driver.take(20_MiB);  // the first chunk, behind its 8 MiB in use
  const Address c = driver.take(2_MiB);
  EXPECT_EQ(a % 32_MiB, 30_MiB);
  EXPECT_EQ(b % 32_MiB, 8_MiB);
  EXPECT_EQ(c, b + 20_MiB);               // recorded: …835299840 = …814328320 + 20 MiB
  const Address d = driver.take(20_MiB);  // a new chunk
  EXPECT_EQ(d % 32_MiB, 0u);
  const Address e = driver.take(40_MiB);  // a new chunk of 64 MiB
  const Address f = driver.take(22_MiB);
  EXPECT_EQ(f, e + 40_MiB);                   // recorded: …243902976 = …201959936 + 40 MiB
  EXPECT_EQ(driver.take(2_MiB), f + 22_MiB);  // recorded: …266971648
}

// R10.7.2: top-down, in gaps strictly larger than the chunk, else below all others.
TEST(DriverAddresses, PlaceChunksTopDown) {
  DriverAddresses driver = DriverAddresses::of_bare_process();
  const Address a = driver.take(96_MiB);
  const Address b = driver.take(32_MiB);
  const Address c = driver.take(64_MiB);
  EXPECT_EQ(b, a - 32_MiB);
  EXPECT_EQ(c, b - 64_MiB);
  driver.give(a, 96_MiB);
  EXPECT_EQ(driver.take(96_MiB), c - 96_MiB);  // exactly the gap's size: passed over
  EXPECT_EQ(driver.take(64_MiB), a + 32_MiB);  // the upper end of the gap
}

// R10.7.3, R10.7.4
TEST(DriverAddresses, PreferTheNewestChunkAndTheSmallestHole) {
  DriverAddresses driver = DriverAddresses::of_bare_process();
  EXPECT_EQ(driver.take(2_MiB) % 32_MiB, 6_MiB);
  const Address chunk = driver.take(20_MiB);  // 26 − 2 = 24 MiB were free in the start chunk
  const Address next = driver.take(28_MiB);
  const Address x = driver.take(2_MiB);
  EXPECT_EQ(x, next + 28_MiB);
  const Address y = driver.take(2_MiB);
  EXPECT_EQ(y, x + 2_MiB);
  driver.give(x, 2_MiB);
  driver.give(next, 28_MiB);  // holes of 30 MiB merge
  EXPECT_EQ(driver.take(30_MiB), next);
  (void)chunk;
}

// Segments lie where the recorded ones did until the program asks for another size; then below all of them.
TEST(DriverAddresses, FollowARecordingAsLongAsTheSizesAgree) {
  const std::vector<SegmentPlace> places{
      {0x7F312A000000, 126_MiB}, {0x7F31C8800000, 20_MiB}, {0x7F3131E00000, 2_MiB}, {0x7F315E000000, 12_MiB}};
  DriverAddresses driver = DriverAddresses::of_recording(places);
  EXPECT_EQ(driver.take(126_MiB), 0x7F312A000000U);
  EXPECT_EQ(driver.take(20_MiB), 0x7F31C8800000U);
  driver.give(0x7F31C8800000, 20_MiB);
  EXPECT_LT(driver.take(20_MiB), 0x7F312A000000U);  // 2 MiB were next
  EXPECT_LT(driver.take(2_MiB), 0x7F312A000000U);   // it does not begin again
  driver.give(0x7F312A000000, 126_MiB);
}

// A place that is still held cannot be had again: the recorded program had given it back.
TEST(DriverAddresses, LeaveARecordingWhereItsPlaceIsTaken) {
  const std::vector<SegmentPlace> places{{4096, 20_MiB}, {4096, 20_MiB}};  // Windows uses low addresses
  DriverAddresses driver = DriverAddresses::of_recording(places);
  const Address first = driver.take(20_MiB);
  EXPECT_LT(driver.take(20_MiB), first);
  EXPECT_EQ(DriverAddresses::of_recording({}).take(2_MiB),
            DriverAddresses::of_training_process().take(2_MiB));
}

// R10.9
TEST(DriverAddresses, FillTheLowestGapWithRanges) {
  DriverAddresses driver = DriverAddresses::of_bare_process();
  const Bytes range = 95'661'588'480;  // 9/8 of an H100's memory in pages of 20 MiB
  const Address a = driver.take_range(range);
  const Address b = driver.take_range(range);
  EXPECT_EQ(a, 0x302000000u);
  EXPECT_EQ(b - a, 91'232_MiB);  // as recorded
  const Address c = driver.take_range(range);
  driver.give_range(a);
  EXPECT_EQ(driver.take_range(range), a);
  driver.give_range(b);
  EXPECT_EQ(driver.take_range(range), b);
  EXPECT_THROW(driver.give_range(c + 1), InternalError);
}

// R10.6: the measured points, and straight lines between them.
TEST(DriverTimes, InterpolateTheMeasurements) {
  const DriverTimes& times = DriverTimes::of_h100();
  EXPECT_EQ(times.malloc_time(1), SimTime{32'870});
  EXPECT_EQ(times.malloc_time(20_MiB), SimTime{33'070});
  EXPECT_EQ(times.malloc_time(42_MiB), SimTime{33'070 + (36'350 - 33'070) / 2});
  EXPECT_EQ(times.malloc_time(16_GiB), SimTime{939'260});
  EXPECT_GT(times.malloc_time(32_GiB), SimTime{939'260});
  EXPECT_EQ(times.free_time(1_GiB), SimTime{306'340});
  EXPECT_EQ(times.map_time(20_MiB, 1), SimTime{14'090 + 34'270});
  EXPECT_EQ(times.map_time(200_MiB, 10), SimTime{10 * 14'090 + 35'220});
  EXPECT_EQ(times.unmap_time(2_MiB), SimTime{30'850});
  EXPECT_GT(times.free_time(Bytes{1} << 60), SimTime{0});  // no overflow
}

TEST(SimSegments, AddUpTheTimeOfDriverCalls) {
  SimulatedCard card(10_GiB, 0);
  SimSegments segments(card);
  const auto base = segments.reserve(20_MiB);
  segments.release(*base);
  EXPECT_EQ(segments.driver_time(), SimTime{33'070 + 38'060});
  const Address range = segments.reserve_range(1_GiB, 20_MiB);
  ASSERT_TRUE(segments.map(range, 40_MiB));
  EXPECT_EQ(segments.driver_time(), SimTime{33'070 + 38'060} + DriverTimes::of_h100().map_time(40_MiB, 2));
}

TEST(SimSegments, CanBePutBack) {
  SimulatedCard card(1_GiB, 0);
  SimSegments segments(card);
  const auto first = segments.reserve(100_MiB);
  const SimSegments::State saved = segments.save();
  std::vector<std::uint64_t> before;
  segments.append_canonical_state(before);

  const auto second = segments.reserve(200_MiB);
  segments.release(*first);
  std::vector<std::uint64_t> changed;
  segments.append_canonical_state(changed);
  EXPECT_NE(before, changed);

  segments.restore(saved);
  EXPECT_EQ(card.taken(), 100_MiB);
  std::vector<std::uint64_t> after;
  segments.append_canonical_state(after);
  EXPECT_EQ(before, after);
  EXPECT_EQ(segments.reserve(200_MiB), second);
  segments.release(*first);
}

TEST(RecordedSegments, HandOutWhatTheyAreGiven) {
  RecordedSegments segments(80_GiB, 100_MiB);
  segments.supply_segment(0x7000'0000);
  EXPECT_EQ(segments.reserve(60_MiB), Address{0x7000'0000});
  EXPECT_FALSE(segments.reserve(60_MiB));
  const auto symbolic = segments.reserve(20_MiB);
  ASSERT_TRUE(symbolic);
  EXPECT_TRUE(segments.is_symbolic(*symbolic));
  EXPECT_FALSE(segments.is_symbolic(0x7000'0000));
  EXPECT_EQ(segments.device_free(), 20_MiB);
  const Address range = segments.reserve_range(90_GiB, 20_MiB);
  EXPECT_LT(range, *symbolic);
  EXPECT_TRUE(segments.map(range, 20_MiB));
  EXPECT_FALSE(segments.map(range + 20_MiB, 20_MiB));
  segments.unmap(range, 20_MiB);
  segments.release(0x7000'0000);
  EXPECT_EQ(segments.device_free(), 80_MiB);
  EXPECT_THROW(segments.release(0x7000'0000), InternalError);
}

}  // namespace
}  // namespace vramlab
