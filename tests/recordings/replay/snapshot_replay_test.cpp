// The acceptance test of the allocator on real programs: every entry, counter and block that PyTorch
// recorded.
#include "recordings/replay/snapshot_replay.hpp"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Action = TraceEntry::Action;

const fs::path kSnapshotFixtures = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data/recorded";
const fs::path kShared = fs::path(VRAMLAB_SOURCE_DIR) / "../shared/data";

/// Figures of a recording as an exact model must meet them.
struct SnapshotRecording {
  const char* name;
  std::uint64_t entries;
  std::uint64_t allocations;
  std::uint64_t segment_events;
  std::uint64_t marks;
  std::uint64_t empty_caches;
  std::uint64_t ooms;
  std::uint64_t oom_texts;
  std::uint64_t blocks;
  std::uint64_t segments;
};

void PrintTo(const SnapshotRecording& recording, std::ostream* out) { *out << recording.name; }

// The figures of the recordings (docs/fidelity.md); those named *_fit are
// counted in the files.
constexpr SnapshotRecording kCommittedSnapshots[] = {
    {"bert", 13003, 4827, 148, 6, 0, 0, 0, 962, 148},   {"graphed", 391, 141, 34, 7, 2, 0, 0, 44, 16},
    {"lstm", 532, 191, 23, 5, 0, 0, 0, 55, 23},         {"resnet", 8358, 3176, 120, 6, 0, 0, 0, 747, 120},
    {"twostream", 8392, 3196, 98, 6, 0, 0, 0, 725, 98},
};
constexpr SnapshotRecording kOtherSnapshots[] = {
    {"bert_fit", 35623, 12371, 136, 14, 0, 0, 0, 954, 136},
    {"generate", 219347, 73174, 53, 6, 0, 0, 0, 150, 53},
    {"generate_fit", 123940, 41368, 64, 8, 0, 0, 0, 161, 64},
    {"gpt2_cap.cap", 21475, 7385, 209, 10, 0, 5, 5, 569, 127},
    {"gpt2_cap.cap_combo", 24155, 8283, 492, 10, 0, 4, 4, 787, 174},
    {"gpt2_ckpt", 17056, 6067, 47, 5, 0, 0, 0, 668, 47},
    {"gpt2_fit", 59316, 20117, 155, 16, 0, 0, 0, 774, 155},
    {"gpt2_var", 34581, 11855, 206, 10, 0, 0, 0, 829, 206},
    {"gpt2_var.expand", 34534, 11855, 159, 10, 0, 0, 0, 672, 2},
    {"hetero", 51403, 17743, 196, 10, 0, 0, 0, 1213, 196},
    {"hetero_fit", 102138, 34647, 219, 18, 0, 0, 0, 1258, 219},
    {"lstm_fit", 1636, 554, 38, 12, 0, 0, 0, 67, 38},
    {"resnet.stacks", 8358, 3176, 120, 6, 0, 0, 0, 747, 120},
    {"resnet_fit", 24057, 8400, 147, 14, 0, 0, 0, 772, 147},
    {"sr_cap.cap4g", 31998, 10965, 541, 13, 0, 66, 3, 856, 107},
    {"sr_cap.cap4g_expand", 31882, 11004, 280, 13, 0, 94, 3, 758, 2},
    {"sr_dual", 71593, 24292, 221, 22, 0, 0, 0, 981, 221},
    {"sr_dual.expand", 71568, 24292, 196, 22, 0, 0, 0, 776, 2},
};

std::string test_name(const testing::TestParamInfo<SnapshotRecording>& test) {
  std::string name = test.param.name;
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
}

void expect_no_mismatch(const SnapshotReplayResult& result) {
  EXPECT_EQ(result.entry_mismatches, 0u);
  EXPECT_EQ(result.address_mismatches, 0u);
  EXPECT_EQ(result.segment_events_matched, result.segment_events_recorded);
  EXPECT_EQ(result.counter_mismatches, 0u);
  EXPECT_EQ(result.oom_text_mismatches, 0u);
  EXPECT_EQ(result.segment_mismatches, 0u);
  EXPECT_EQ(result.block_mismatches, 0u);
  EXPECT_TRUE(result.exact());
  if (const auto& first = result.first_divergence) {
    ADD_FAILURE() << "entry " << first->operation << " (" << first->kind << "): " << first->what
                  << " recorded " << first->recorded << ", simulated " << first->simulated;
  }
}

void expect_exact_snapshot(const fs::path& folder, const SnapshotRecording& recording) {
  const TorchSnapshot snapshot = read_torch_snapshot(folder / (recording.name + std::string(".pickle.gz")));
  const TruthFile truth = read_truth_file(folder / (recording.name + std::string(".truth.json.gz")));
  SnapshotReplay replay(snapshot, 0, {.truth = &truth, .limit = {}});
  const SnapshotReplayResult& result = replay.run();
  EXPECT_EQ(result.operations, recording.entries);
  EXPECT_EQ(truth.entries, recording.entries + 1);  // R11.4
  EXPECT_EQ(result.allocations, recording.allocations);
  EXPECT_EQ(result.addresses_checked + result.addresses_given, recording.allocations);
  EXPECT_LE(result.addresses_given, recording.segment_events);
  EXPECT_EQ(result.segment_events_recorded, recording.segment_events);
  EXPECT_EQ(result.marks_checked, recording.marks);
  EXPECT_EQ(result.counters_checked, 122 * recording.marks);
  EXPECT_EQ(result.empty_caches, recording.empty_caches);
  EXPECT_EQ(result.ooms, recording.ooms);
  EXPECT_EQ(result.oom_texts_checked, recording.oom_texts);
  EXPECT_EQ(result.blocks_checked, recording.blocks);
  EXPECT_EQ(result.segments_checked, recording.segments);
  EXPECT_THAT(result.approximate, IsEmpty());
  expect_no_mismatch(result);
  EXPECT_THAT(validate(replay.allocator()), IsEmpty());
}

class CommittedSnapshot : public testing::TestWithParam<SnapshotRecording> {};

TEST_P(CommittedSnapshot, IsReproducedExactly) { expect_exact_snapshot(kSnapshotFixtures, GetParam()); }

INSTANTIATE_TEST_SUITE_P(Recorded, CommittedSnapshot, testing::ValuesIn(kCommittedSnapshots), test_name);

class FurtherSnapshot : public testing::TestWithParam<SnapshotRecording> {};

TEST_P(FurtherSnapshot, IsReproducedExactly) {
  if (!fs::exists(kShared / "recorded")) GTEST_SKIP() << "the folder of further recordings is not here";
  expect_exact_snapshot(kShared / "recorded", GetParam());
}

INSTANTIATE_TEST_SUITE_P(Recorded, FurtherSnapshot, testing::ValuesIn(kOtherSnapshots), test_name);

/// Of a recording from another card, an NVIDIA H200: entries and allocations as counted in the file.
struct OtherCardRecording {
  const char* name;  ///< under the folder of further data
  int device;
  std::uint64_t entries;
  std::uint64_t addresses;  ///< predicted ones
  std::uint64_t marks;
};

void PrintTo(const OtherCardRecording& recording, std::ostream* out) { *out << recording.name; }

constexpr OtherCardRecording kOtherCard[] = {
    {"programs-h200/accum", 0, 131145, 43885, 14},
    {"programs-h200/ddp_w1.rank0", 0, 53862, 17872, 12},
    {"programs-h200/ddp_w2.rank0", 0, 53866, 17872, 12},
    {"programs-h200/ddp_w2.rank1", 1, 53866, 17872, 12},
    {"programs-h200/fsdp_w1.rank0", 0, 60389, 20023, 12},
    {"programs-h200/fsdp_w2.rank0", 0, 55971, 18681, 12},
    {"programs-h200/fsdp_w2.rank1", 1, 55971, 18681, 12},
    {"programs-h200/llama", 0, 58943, 19791, 16},
    {"programs-h200/llama.stacks", 0, 29824, 10106, 9},
    {"programs-h200/llama_ckpt", 0, 67804, 22826, 14},
    {"programs-h200/llama_half.stacks", 0, 29935, 10183, 8},
    {"programs-h200/vit", 0, 31359, 10571, 14},
    {"judge/base1", 0, 23236, 7894, 10},
    {"judge/base2", 0, 23236, 7894, 10},
    {"judge/batch5", 0, 23243, 7887, 10},
    {"judge/conf_pow4", 0, 23237, 7893, 10},
    {"judge/layers13", 0, 36830, 12510, 10},
    {"judge/leak", 0, 23247, 7899, 10},
    {"judge/recomputed", 0, 27073, 9177, 10},
    {"judge/stream", 0, 23261, 7901, 10},
};

class OtherCard : public testing::TestWithParam<OtherCardRecording> {};

TEST_P(OtherCard, IsReproducedExactly) {
  const OtherCardRecording& recording = GetParam();
  const fs::path file = kShared / (recording.name + std::string(".pickle.gz"));
  if (!fs::exists(file)) GTEST_SKIP() << "the folder of further recordings is not here";
  const TruthFile truth = read_truth_file(kShared / (recording.name + std::string(".truth.json.gz")));
  const SnapshotReplayResult result =
      SnapshotReplay(read_torch_snapshot(file), recording.device, {.truth = &truth, .limit = {}}).run();
  EXPECT_EQ(result.operations, recording.entries);
  EXPECT_EQ(result.addresses_checked, recording.addresses);
  EXPECT_EQ(result.marks_checked, recording.marks);
  EXPECT_EQ(result.counters_checked, 122 * recording.marks);
  expect_no_mismatch(result);
}

INSTANTIATE_TEST_SUITE_P(Recorded, OtherCard, testing::ValuesIn(kOtherCard), [](const auto& test) {
  std::string name = test.param.name;
  for (char& c : name) c = c == '.' || c == '/' || c == '-' ? '_' : c;
  return name;
});

TEST(SnapshotReplay, APublicSnapshotFromAnEmptyAllocatorIsReproduced) {
  const fs::path file = kShared / "public-snapshots/transformer-complete.pickle.gz";
  if (!fs::exists(file)) GTEST_SKIP() << "the folder of public snapshots is not here";
  const SnapshotReplayResult result = replay_snapshot(read_torch_snapshot(file), 0);
  EXPECT_EQ(result.operations, 97u);
  EXPECT_EQ(result.allocations, 36u);
  EXPECT_EQ(result.addresses_given, 9u);
  EXPECT_EQ(result.counters_checked, 0u);
  EXPECT_EQ(result.segments_checked, 9u);
  expect_no_mismatch(result);
}

TEST(SnapshotReplay, ADeviceWithoutHistoryIsRefused) {
  const TorchSnapshot snapshot = read_torch_snapshot(kSnapshotFixtures / "lstm.pickle.gz");
  EXPECT_THAT(recorded_devices(snapshot), ElementsAre(0));
  EXPECT_THROW(replay_snapshot(snapshot, 1), InputError);
  EXPECT_THROW(replay_snapshot(snapshot, -1), InputError);
  EXPECT_THROW(replay_snapshot(TorchSnapshot{}, 0), InputError);
}

// The history of twostream says where frees completed, and that two still wait at the end (R3.8, R11.2).
TEST(SnapshotReplay, DeferredFreesCompleteWhereTheyDid) {
  const SnapshotReplayResult result =
      replay_snapshot(read_torch_snapshot(kSnapshotFixtures / "twostream.pickle.gz"), 0);
  EXPECT_EQ(result.deferred_frees, 9u);
  EXPECT_EQ(result.pending_frees, 2u);
  expect_no_mismatch(result);
}

// A damaged history is replayed as far as it goes.
TEST(SnapshotReplay, AFreeThatCompletesTwiceIsNoticed) {
  TorchSnapshot snapshot = read_torch_snapshot(kSnapshotFixtures / "twostream.pickle.gz");
  std::vector<TraceEntry>& trace = snapshot.traces[0];
  for (std::size_t i = 1; i < trace.size(); ++i) {
    const bool deferred =
        trace[i].action == Action::free_completed && trace[i - 1].address != trace[i].address;
    if (!deferred) continue;
    trace.insert(trace.begin() + static_cast<std::ptrdiff_t>(i), TraceEntry{trace[i]});
    break;
  }
  EXPECT_GE(replay_snapshot(snapshot, 0).entry_mismatches, 1u);
}

TEST(SnapshotReplay, AGraphsCaptureIsFoundInTheFinalSegments) {
  const SnapshotReplayResult result =
      replay_snapshot(read_torch_snapshot(kSnapshotFixtures / "graphed.pickle.gz"), 0);
  EXPECT_EQ(result.captures, 1u);
  EXPECT_EQ(result.empty_caches, 2u);
  EXPECT_THAT(result.approximate, ElementsAre("retries"));
  expect_no_mismatch(result);
}

TEST(SnapshotReplay, TwoDevicesAreReplayedApart) {
  TorchSnapshot snapshot = read_torch_snapshot(kSnapshotFixtures / "lstm.pickle.gz");
  const TorchSnapshot other = read_torch_snapshot(kSnapshotFixtures / "graphed.pickle.gz");
  snapshot.traces.push_back(other.traces[0]);
  for (SnapshotSegment segment : other.segments) {
    segment.device = 1;
    snapshot.segments.push_back(segment);
  }
  EXPECT_THAT(recorded_devices(snapshot), ElementsAre(0, 1));
  for (const int device : {0, 1}) {
    const SnapshotReplayResult result = replay_snapshot(snapshot, device);
    EXPECT_EQ(result.device, device);
    EXPECT_EQ(result.segments_checked, device == 0 ? 23u : 16u);
    expect_no_mismatch(result);
  }
}

// --- A replay that could not see a difference would prove nothing ---

class SnapshotReplayNotices : public testing::Test {
 protected:
  SnapshotReplayResult replay() { return replay_snapshot(snapshot, 0, {.truth = &truth, .limit = {}}); }

  std::size_t first(Action action, std::size_t from = 0) const {
    while (snapshot.traces[0][from].action != action) ++from;
    return from;
  }

  TorchSnapshot snapshot = read_torch_snapshot(kSnapshotFixtures / "lstm.pickle.gz");
  TruthFile truth = read_truth_file(kSnapshotFixtures / "lstm.truth.json.gz");
};

TEST_F(SnapshotReplayNotices, AChangedAddress) {
  const std::size_t last = snapshot.traces[0].size() - 1;
  std::size_t place = last;
  while (snapshot.traces[0][place].action != Action::alloc) --place;
  snapshot.traces[0][place].address += 512;
  const SnapshotReplayResult result = replay();
  EXPECT_EQ(result.address_mismatches, 1u);
  EXPECT_GE(result.entry_mismatches, 1u);
  ASSERT_TRUE(result.first_divergence);
  EXPECT_EQ(result.first_divergence->operation, place);
  EXPECT_EQ(result.first_divergence->what, "address");
}

TEST_F(SnapshotReplayNotices, AChangedStream) {
  const std::size_t place = first(Action::free_completed);
  snapshot.traces[0][place].stream = 7;
  const SnapshotReplayResult result = replay();
  EXPECT_EQ(result.entry_mismatches, 1u);
  EXPECT_EQ(result.first_divergence->operation, place);
}

TEST_F(SnapshotReplayNotices, EveryCounterOfEveryMark) {
  for (TruthMark& mark : truth.marks) {
    for (auto& counter : mark.stats) ++*counter;
  }
  const SnapshotReplayResult result = replay();
  EXPECT_EQ(result.counter_mismatches, 122 * truth.marks.size());
  EXPECT_THAT(result.first_divergence->what, HasSubstr(" at \"start\""));
}

TEST_F(SnapshotReplayNotices, EveryFieldOfTheFinalBlocks) {
  SnapshotBlock& block = snapshot.segments[0].blocks[0];
  const SnapshotBlock before = block;
  const auto expect_noticed = [&] {
    const SnapshotReplayResult result = replay();
    EXPECT_EQ(result.block_mismatches, 1u);
    EXPECT_EQ(result.segment_mismatches, 0u);
    block = before;
  };
  block.size += 512;
  expect_noticed();
  block.address += 512;
  expect_noticed();
  block.requested += 1;
  expect_noticed();
  block.state = SnapshotBlock::State::active_pending_free;
  expect_noticed();
}

TEST_F(SnapshotReplayNotices, EveryFieldOfTheFinalSegments) {
  SnapshotSegment& segment = snapshot.segments[0];
  const SnapshotSegment before = segment;
  const auto expect_noticed = [&] {
    const SnapshotReplayResult result = replay();
    EXPECT_EQ(result.segment_mismatches, 1u);
    EXPECT_EQ(result.entry_mismatches, 0u);
    segment = before;
  };
  segment.stream = 3;
  expect_noticed();
  segment.large = !segment.large;
  expect_noticed();
  segment.expandable = true;
  expect_noticed();
  segment.active_size += 512;
  expect_noticed();
  segment.requested_size += 1;
  expect_noticed();
  segment.blocks.pop_back();
  EXPECT_EQ(replay().segment_mismatches, 1u);
}

TEST_F(SnapshotReplayNotices, OtherSettings) {
  snapshot.settings.roundup_power2_divisions.assign(16, 4);
  EXPECT_GT(replay().counter_mismatches, 0u);
}

TEST_F(SnapshotReplayNotices, ALimitThatTheProgramDidNotHave) {
  const SnapshotReplayResult result = replay_snapshot(snapshot, 0, {.truth = &truth, .limit = 20_MiB});
  EXPECT_GT(result.address_mismatches, 0u);
  EXPECT_LT(result.segment_events_matched, result.segment_events_recorded);
  EXPECT_FALSE(result.exact());
}

TEST_F(SnapshotReplayNotices, AnEntryThatIsMissing) {
  auto& trace = snapshot.traces[0];
  trace.erase(trace.begin() + static_cast<std::ptrdiff_t>(first(Action::free_requested)));
  EXPECT_FALSE(replay().exact());
}

}  // namespace
}  // namespace vramlab
