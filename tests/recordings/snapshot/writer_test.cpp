// What we write must be what PyTorch writes: byte by byte where nothing else is in the recording.
#include "recordings/snapshot/writer.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recordings/input_file.hpp"
#include "recordings/replay/snapshot_replay.hpp"
#include "sim/memory/segments/sim_segments.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

const fs::path kWriterFixtures = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data/recorded";
const fs::path kWriterShared = fs::path(VRAMLAB_SOURCE_DIR) / "../shared/data/recorded";

std::string written(const TorchSnapshot& snapshot, std::span<const SnapshotAnnotation> annotations = {}) {
  std::string bytes;
  write_torch_snapshot(
      snapshot, [&](std::string_view piece) { bytes += piece; }, annotations);
  return bytes;
}

// The bytes of both up to the annotations, which our reader does not keep. Frames before are equal too, since
// each ends by its own content; the frame that holds the annotations has its length in front.
void expect_same_bytes(const fs::path& file) {
  const std::string recorded = read_input_file(file);
  const std::string ours = written(parse_torch_snapshot(recorded, file.string()));
  const std::size_t end = recorded.find("external_annotations");
  ASSERT_NE(end, std::string::npos);
  ASSERT_EQ(ours.find("external_annotations"), end);
  std::size_t different = 0;
  for (std::size_t i = 0; i < end; ++i) different += recorded[i] != ours[i] ? 1 : 0;
  EXPECT_LE(different, 3u) << file;  // the length of the last frame
}

TEST(SnapshotWriter, WritesTheFixturesByteByByte) {
  for (const char* name : {"bert", "graphed", "lstm", "twostream"}) {
    expect_same_bytes(kWriterFixtures / (std::string{name} + ".pickle.gz"));
  }
}

// graphed has no annotations: the whole file is equal.
TEST(SnapshotWriter, WritesAWholeFileByteByByte) {
  const std::string recorded = read_input_file(kWriterFixtures / "graphed.pickle.gz");
  EXPECT_EQ(written(parse_torch_snapshot(recorded, "graphed")), recorded);
}

TEST(SnapshotWriter, WritesAllRecordingsWithoutStacksByteByByte) {
  if (!fs::exists(kWriterShared)) GTEST_SKIP() << "no " << kWriterShared;
  for (const char* name : {"gpt2_cap.cap_combo", "sr_cap.cap4g_expand", "hetero", "generate_fit"}) {
    expect_same_bytes(kWriterShared / (std::string{name} + ".pickle.gz"));
  }
}

/// Everything that the reader keeps, compared.
void expect_equal(const TorchSnapshot& a, const TorchSnapshot& b) {
  ASSERT_EQ(a.segments.size(), b.segments.size());
  for (std::size_t i = 0; i < a.segments.size(); ++i) {
    const SnapshotSegment& x = a.segments[i];
    const SnapshotSegment& y = b.segments[i];
    EXPECT_EQ(std::tie(x.device, x.address, x.total_size, x.allocated_size, x.active_size, x.requested_size,
                       x.stream, x.large, x.expandable, x.pool),
              std::tie(y.device, y.address, y.total_size, y.allocated_size, y.active_size, y.requested_size,
                       y.stream, y.large, y.expandable, y.pool));
    ASSERT_EQ(x.blocks.size(), y.blocks.size());
    for (std::size_t k = 0; k < x.blocks.size(); ++k) {
      EXPECT_EQ(std::tie(x.blocks[k].address, x.blocks[k].size, x.blocks[k].requested, x.blocks[k].state),
                std::tie(y.blocks[k].address, y.blocks[k].size, y.blocks[k].requested, y.blocks[k].state));
    }
  }
  ASSERT_EQ(a.traces.size(), b.traces.size());
  const auto frames_of = [](const TorchSnapshot& snapshot, StackId id) {
    std::vector<StackFrame> frames;
    for (const std::uint32_t frame : snapshot.stacks[id]) frames.push_back(snapshot.frames[frame]);
    return frames;
  };
  for (std::size_t d = 0; d < a.traces.size(); ++d) {
    ASSERT_EQ(a.traces[d].size(), b.traces[d].size());
    for (std::size_t i = 0; i < a.traces[d].size(); ++i) {
      const TraceEntry& x = a.traces[d][i];
      const TraceEntry& y = b.traces[d][i];
      ASSERT_EQ(std::tie(x.action, x.address, x.size, x.stream, x.time_us),
                std::tie(y.action, y.address, y.size, y.stream, y.time_us))
          << "entry " << i;
      ASSERT_EQ(frames_of(a, x.stack), frames_of(b, y.stack)) << "entry " << i;
    }
  }
  EXPECT_EQ(a.settings.conf, b.settings.conf);
  EXPECT_EQ(a.settings.max_split_size, b.settings.max_split_size);
  EXPECT_EQ(a.settings.expandable_segments, b.settings.expandable_segments);
  EXPECT_EQ(a.settings.roundup_power2_divisions, b.settings.roundup_power2_divisions);
}

TEST(SnapshotWriter, KeepsStacks) {
  const fs::path file = kWriterShared / "resnet.stacks.pickle.gz";
  if (!fs::exists(file)) GTEST_SKIP() << "no " << file;
  const TorchSnapshot recorded = read_torch_snapshot(file);
  expect_equal(recorded, parse_torch_snapshot(written(recorded), "ours"));
}

// Several devices, batches of exactly 1000, one entry and none.
TEST(SnapshotWriter, WritesEveryLengthOfHistory) {
  TorchSnapshot snapshot;
  snapshot.settings = {.conf = "",
                       .max_split_size = -1,
                       .garbage_collection_threshold = 0,
                       .expandable_segments = false,
                       .roundup_power2_divisions = std::vector<std::uint64_t>(16, 0)};
  for (const std::size_t length : {0u, 1u, 2u, 999u, 1000u, 1001u, 2000u}) {
    auto& trace = snapshot.traces.emplace_back(length);
    for (std::size_t i = 0; i < length; ++i) trace[i].size = i * 300;
  }
  expect_equal(snapshot, parse_torch_snapshot(written(snapshot), "ours"));
  snapshot.traces.resize(1);
  expect_equal(snapshot, parse_torch_snapshot(written(snapshot), "ours"));
  snapshot.traces.clear();
  expect_equal(snapshot, parse_torch_snapshot(written(snapshot), "ours"));
}

/// A program on the simulated allocator, as a snapshot.
TorchSnapshot simulated(const char* conf, HistoryRecorder& history) {
  SimulatedCard card{8_GiB};
  SimSegments memory{card};
  CachingAllocator allocator{memory, {.settings = parse_allocator_settings(conf)}};
  allocator.set_listener(&history);
  std::vector<BlockId> live;
  std::uint64_t random = 1;
  for (int i = 0; i < 3000; ++i) {
    history.set_time_us(1000 * i);
    random = random * 6364136223846793005u + 1442695040888963407u;
    if ((random >> 33) % 2 == 0 || live.empty()) {
      const auto result = allocator.allocate(1 + (random >> 40), kDefaultStream);
      if (result) live.push_back(result->block);
    } else {
      const std::size_t place = (random >> 40) % live.size();
      allocator.free(live[place]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(place));
    }
  }
  TorchSnapshot snapshot = snapshot_of(allocator);
  snapshot.traces = {history.entries()};
  return snapshot;
}

TEST(SnapshotWriter, ItsFilesAreReplayedExactly) {
  for (const char* conf :
       {"", "expandable_segments:True", "max_split_size_mb:32,roundup_power2_divisions:4"}) {
    HistoryRecorder history;
    const TorchSnapshot made = simulated(conf, history);
    const TorchSnapshot read = parse_torch_snapshot(written(made), "ours");
    expect_equal(made, read);
    const SnapshotReplayResult result = replay_snapshot(read, 0);
    EXPECT_GT(result.addresses_checked, 1000u);
    EXPECT_EQ(result.entry_mismatches, 0u);
    EXPECT_EQ(result.block_mismatches, 0u);
    EXPECT_TRUE(result.exact()) << conf;
  }
}

// R11.7: a full ring loses the oldest.
TEST(HistoryRecorder, KeepsTheNewestEntries) {
  HistoryRecorder history{3};
  for (Bytes n = 1; n <= 5; ++n) history.on_event({AllocatorEvent::Action::alloc, n, n, 0});
  const auto entries = history.entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].size, 3u);
  EXPECT_EQ(entries[2].size, 5u);
  EXPECT_EQ(history.lost(), 2u);
}

// Python's own pickle module: ours and a recorded file have equal keys in equal order and equal types.
TEST(SnapshotWriter, PythonLoadsTheSameStructure) {
  if (std::system("python3 -c 'import pickle' >/dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  const ScratchFolder folder;
  HistoryRecorder history;
  const SnapshotAnnotation step{"step#1", true, 0, 5};
  std::ofstream{folder.file("ours.pickle"), std::ios::binary} << written(simulated("", history), {&step, 1});
  std::ofstream{folder.file("recorded.pickle"), std::ios::binary}
      << read_input_file(kWriterFixtures / "bert.pickle.gz");
  std::ofstream{folder.file("compare.py")} << R"(
import pickle, sys
def shape(value):
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        kinds = []
        for item in value:
            s = shape(item)
            if s not in kinds: kinds.append(s)
        return type(value).__name__, sorted(kinds, key=repr)
    return type(value).__name__
def compare(path, a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b): sys.exit(f'{path}: recorded keys {list(a)}, ours {list(b)}')
        for k in a: compare(path + '/' + k, a[k], b[k])
    elif a != b: sys.exit(f'{path}: recorded {a}, ours {b}')
recorded, ours = [pickle.load(open(name, 'rb')) for name in ('recorded.pickle', 'ours.pickle')]
compare('', shape(recorded), shape(ours))
)";
  const std::string command = "cd '" + folder.path().string() + "' && python3 compare.py 2>difference";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_input_file(folder.file("difference"));
}

}  // namespace
}  // namespace vramlab
