// The rebuilt initial state (R11.12): against the true state that a whole recording has at a later entry, and
// on public snapshots that begin late.
#include "trace/initial_state.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/error.hpp"
#include "sim/memory/validate.hpp"
#include "trace/final_segments.hpp"
#include "trace/snapshot_replay.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using Action = TraceEntry::Action;
using State = SnapshotBlock::State;

const fs::path kFixtures = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data/recorded";
const fs::path kShared = fs::path(VRAMLAB_SOURCE_DIR) / "../shared/data";

// --- The true state, and what is rebuilt ---

/// A rebuilt state held against the true one.
struct Comparison {
  std::uint64_t segments = 0;  ///< true ones
  std::uint64_t active = 0;    ///< true blocks in use
  std::uint64_t wrong_segments = 0;
  std::uint64_t wrong_blocks = 0;  ///< address, requested size or state
  std::uint64_t wrong_sizes = 0;
  Bytes size_error = 0;
};

std::vector<SnapshotBlock> active_blocks(const SnapshotSegment& segment) {
  std::vector<SnapshotBlock> blocks;
  for (const SnapshotBlock& block : segment.blocks) {
    if (block.state != State::inactive) blocks.push_back(block);
  }
  return blocks;
}

void compare(const SnapshotSegment& truth, const SnapshotSegment& rebuilt, Comparison& comparison) {
  const bool equal = truth.total_size == rebuilt.total_size && truth.stream == rebuilt.stream &&
                     truth.large == rebuilt.large && truth.expandable == rebuilt.expandable;
  if (!equal) ++comparison.wrong_segments;
  const auto true_blocks = active_blocks(truth);
  const auto rebuilt_blocks = active_blocks(rebuilt);
  comparison.active += true_blocks.size();
  if (true_blocks.size() != rebuilt_blocks.size()) {
    comparison.wrong_blocks += true_blocks.size();
    return;
  }
  for (std::size_t i = 0; i < true_blocks.size(); ++i) {
    const SnapshotBlock& a = true_blocks[i];
    const SnapshotBlock& b = rebuilt_blocks[i];
    if (a.address != b.address || a.requested != b.requested || a.state != b.state) ++comparison.wrong_blocks;
    if (a.size == b.size) continue;
    ++comparison.wrong_sizes;
    comparison.size_error += a.size > b.size ? a.size - b.size : b.size - a.size;
  }
}

Comparison compare(const std::vector<SnapshotSegment>& truth, const std::vector<SnapshotSegment>& rebuilt) {
  Comparison comparison;
  comparison.segments = truth.size();
  std::map<Address, const SnapshotSegment*> by_address;
  for (const SnapshotSegment& segment : rebuilt) by_address[segment.address] = &segment;
  for (const SnapshotSegment& segment : truth) {
    const auto found = by_address.find(segment.address);
    if (found == by_address.end()) {
      ++comparison.wrong_segments;
      comparison.active += active_blocks(segment).size();
      comparison.wrong_blocks += active_blocks(segment).size();
      continue;
    }
    compare(segment, *found->second, comparison);
    by_address.erase(found);
  }
  comparison.wrong_segments += by_address.size();
  return comparison;
}

TorchSnapshot without_first(const TorchSnapshot& snapshot, std::size_t entries) {
  TorchSnapshot cut = snapshot;
  cut.traces[0].erase(cut.traces[0].begin(), cut.traces[0].begin() + static_cast<std::ptrdiff_t>(entries));
  return cut;
}

TEST(Explore, All) {
  std::vector<fs::path> files;
  for (const auto& folder : {kFixtures, kShared / "recorded"}) {
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.path().string().ends_with(".pickle.gz")) files.push_back(file.path());
    }
  }
  for (const fs::path& file : files) {
    const TorchSnapshot snapshot = read_torch_snapshot(file);
    std::string base = file.string();
    base.resize(base.size() - 10);
    const TruthFile truth = read_truth_file(base + ".truth.json.gz");
    SnapshotReplay whole(snapshot, 0, {.truth = &truth, .limit = {}});
    for (const int tenth : {1, 3, 5, 7, 9}) {
      const std::size_t target = snapshot.traces[0].size() * static_cast<std::size_t>(tenth) / 10;
      while (whole.next_entry() < target && whole.step()) continue;
      const std::size_t k = whole.next_entry();
      const auto true_segments = snapshot_segments(whole.allocator(), 0, whole.pools());
      const TorchSnapshot cut = without_first(snapshot, k);
      try {
        SnapshotReplay late(cut, 0, {.truth = &truth, .limit = {}});
        const InitialState& i = late.initial_state();
        const Comparison c = compare(true_segments, i.segments);
        const auto& r = late.run();
        std::printf("%s %zu seg %lu act %lu | wrong seg %lu blk %lu size %lu (%lu B) | file %lu nb %lu rnd %lu tail %lu nosplit %lu taken %lu | addr %lu ent %lu ctr %lu/%lu oom %lu seg %lu blk %lu exact %d %s\n",
          file.filename().c_str(), k, c.segments, c.active, c.wrong_segments, c.wrong_blocks, c.wrong_sizes, c.size_error,
          i.blocks_in_file, i.ended_by_neighbour, i.exactly_rounded, i.tails_owned, i.never_split, i.taken_as_rounded,
          r.address_mismatches, r.entry_mismatches, r.counter_mismatches, r.counters_checked, r.oom_text_mismatches, r.segment_mismatches, r.block_mismatches, r.exact(),
          r.first_divergence ? (std::to_string(r.first_divergence->operation)+" "+r.first_divergence->kind+" "+r.first_divergence->what+" rec "+r.first_divergence->recorded+" sim "+r.first_divergence->simulated).c_str() : "");
      } catch (const std::exception& e) { std::printf("%s %zu EXC %s\n", file.filename().c_str(), k, e.what()); }
    }
  }
}

}  // namespace
}  // namespace vramlab
