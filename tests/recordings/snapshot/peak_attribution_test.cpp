#include "recordings/snapshot/peak_attribution.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>

#include "recordings/snapshot/marks.hpp"
#include "sim/memory/memory_stats.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using Action = TraceEntry::Action;

const fs::path kPeakFixtures = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data/recorded";

Bytes sum(const std::vector<PeakShare>& shares) {
  return std::accumulate(shares.begin(), shares.end(), Bytes{0},
                         [](Bytes total, const PeakShare& share) { return total + share.bytes; });
}

// PyTorch's own requested_bytes.all.peak, the highest of all marks: the counter falls when a free completes
// (R8.2).
TEST(PeakAttribution, MeetsTheRecordedCounter) {
  const auto& names = stat_names();
  const auto column = static_cast<std::size_t>(
      std::find(names.begin(), names.end(), "requested_bytes.all.peak") - names.begin());
  for (const char* name : {"bert", "graphed", "lstm", "twostream"}) {
    const TruthFile truth = read_truth_file(kPeakFixtures / (std::string{name} + ".truth.json.gz"));
    std::int64_t recorded = 0;
    for (const TruthMark& mark : truth.marks) {
      if (!mark.stats.empty()) recorded = std::max(recorded, mark.stats[column].value_or(0));
    }
    const TorchSnapshot snapshot = read_torch_snapshot(kPeakFixtures / (std::string{name} + ".pickle.gz"));
    const PeakAttribution peak = attribute_peak(snapshot, 0);
    EXPECT_EQ(peak.requested, static_cast<Bytes>(recorded)) << name;
    EXPECT_EQ(sum(peak.by_group), peak.requested) << name;
    EXPECT_EQ(sum(peak.by_size_class), peak.requested) << name;
    EXPECT_EQ(sum(peak.by_stream), peak.requested) << name;
    EXPECT_EQ(peak.requested + peak.rest, peak.reserved) << name;
  }
}

TraceEntry entry(Action action, Address address, Bytes size) {
  TraceEntry e;
  e.action = action;
  e.address = address;
  e.size = size;
  return e;
}

// R11.12: blocks from before the window count from its beginning, whether freed within it or still live.
TEST(PeakAttribution, CountsWhatWasThereBeforeTheHistory) {
  TorchSnapshot snapshot;
  SnapshotSegment segment;
  segment.address = 0;
  segment.total_size = 20_MiB;
  segment.blocks = {{0, 1_MiB, 1'000'000, SnapshotBlock::State::active_allocated, 0},
                    {1_MiB, 19_MiB, 0, SnapshotBlock::State::inactive, 0}};
  snapshot.segments = {segment};
  snapshot.traces = {{entry(Action::free_requested, 4_MiB, 3'000'000),
                      entry(Action::free_completed, 4_MiB, 3'000'000), entry(Action::alloc, 4_MiB, 2'500'000),
                      entry(Action::free_requested, 4_MiB, 2'500'000),
                      entry(Action::free_completed, 4_MiB, 2'500'000)}};
  const PeakAttribution peak = attribute_peak(snapshot, 0);
  EXPECT_EQ(peak.requested, 4'000'000u);
  EXPECT_EQ(peak.entry, 0u);
  EXPECT_EQ(peak.reserved, 20_MiB);
  EXPECT_EQ(peak.by_size_class.size(), 2u);
}

// R8.2: memory that waits for another stream is still held; also if its free was requested before the window.
TEST(PeakAttribution, MemoryCountsUntilItsFreeIsCompleted) {
  TorchSnapshot snapshot;
  snapshot.traces = {{entry(Action::alloc, 0, 100), entry(Action::free_requested, 0, 100),
                      entry(Action::alloc, 1_MiB, 10), entry(Action::free_completed, 0, 100),
                      entry(Action::alloc, 2_MiB, 20), entry(Action::free_completed, 3_MiB, 1)}};
  const PeakAttribution peak = attribute_peak(snapshot, 0);
  EXPECT_EQ(peak.requested, 111u);
  EXPECT_EQ(peak.entry, 3u);
}

TEST(PeakAttribution, WithoutHistoryTheSnapshotItselfCounts) {
  TorchSnapshot snapshot;
  SnapshotSegment segment;
  segment.device = 1;
  segment.total_size = 2_MiB;
  segment.blocks = {{0, 512, 8, SnapshotBlock::State::active_pending_free, 0},
                    {512, 512, 500, SnapshotBlock::State::inactive, 0}};
  snapshot.segments = {segment};
  EXPECT_EQ(devices_of(snapshot), std::vector<int>{1});
  const PeakAttribution peak = attribute_peak(snapshot, 1);
  EXPECT_FALSE(peak.from_history);
  EXPECT_EQ(peak.requested, 8u);
  EXPECT_EQ(peak.by_size_class[0].name, "up to 512 B");
  EXPECT_EQ(peak.by_size_class[0].blocks, 1u);
}

}  // namespace
}  // namespace vramlab
