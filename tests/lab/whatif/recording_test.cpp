// What-if answers where a recording does not tell all: runs that died, histories that say nothing, several
// devices, memory outside the allocator.
#include "lab/whatif/recording.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/whatif/view.hpp"
#include "lab/whatif/whatif.hpp"
#include "recordings/open.hpp"
#include "recordings/snapshot/writer.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using Action = TraceEntry::Action;
using State = SnapshotBlock::State;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const fs::path kShared = fs::path(VRAMLAB_SOURCE_DIR) / "../shared";

class RecordingTest : public testing::Test {
 protected:
  std::string written(const TorchSnapshot& snapshot, const std::string& name = "x.pickle") {
    std::ofstream out{folder.file(name), std::ios::binary};
    write_torch_snapshot(snapshot, [&](std::string_view bytes) { out << bytes; });
    return folder.file(name);
  }

  ScratchFolder folder;
};

TraceEntry entry(Action action, Address address, Bytes size, std::int64_t time = 1) {
  TraceEntry one;
  one.action = action;
  one.address = address;
  one.size = size;
  one.time_us = time;
  return one;
}

// A plain segment of its own for one block, as in a history that began with an empty allocator.
void hold(TorchSnapshot& snapshot, Address address, Bytes size, int device = 0) {
  SnapshotSegment segment;
  segment.device = device;
  segment.address = address;
  segment.large = true;
  segment.total_size = segment.allocated_size = segment.active_size = segment.requested_size = size;
  segment.blocks = {{address, size, size, State::active_allocated, 0}};
  snapshot.segments.push_back(segment);
  const auto place = static_cast<std::size_t>(device);
  if (snapshot.traces.size() <= place) snapshot.traces.resize(place + 1);
  snapshot.traces[place].push_back(entry(Action::segment_alloc, address, size));
  snapshot.traces[place].push_back(entry(Action::alloc, address, size));
}

WhatIfAnswer answer(const std::vector<ClientProgram>& programs, std::vector<std::string> confs,
                    std::optional<Bytes> capacity = {}, std::optional<Bytes> limit = {}) {
  WhatIfQuestion question;
  question.confs = std::move(confs);
  question.peaks = true;
  if (capacity) question.cards = {{.name = "a card", .gpu = "", .capacity = capacity}};
  if (limit) question.limits = {limit};
  return answer_whatif(programs, question);
}

// A history of one entry, as `_record_memory_history("state")` leaves it: 400 MiB live in 1,600 MiB. The same
// figures as in a public report on such files.
TorchSnapshot state_only() {
  TorchSnapshot snapshot;
  hold(snapshot, 1_GiB, 600_MiB);
  SnapshotSegment& first = snapshot.segments[0];
  first.allocated_size = first.active_size = first.requested_size = 400_MiB;
  first.blocks = {{1_GiB, 400_MiB, 400_MiB, State::active_allocated, 0},
                  {1_GiB + 400_MiB, 200_MiB, 0, State::inactive, 0}};
  hold(snapshot, 4_GiB, 1000_MiB);
  SnapshotSegment& second = snapshot.segments[1];
  second.allocated_size = second.active_size = second.requested_size = 0;
  second.blocks = {{4_GiB, 1000_MiB, 0, State::inactive, 0}};
  snapshot.traces = {{entry(Action::snapshot, 0, 400_MiB, 5)}};
  return snapshot;
}

TEST_F(RecordingTest, AHistoryThatSaysNothingIsALowerBoundAndNotChecked) {
  const std::string file = written(state_only());
  const auto programs = read_client_programs(file);
  const WhatIfAnswer answered = answer(programs, {""}, {}, 1400_MiB);
  const WhatIfRow& row = answered.rows.at(0);
  EXPECT_TRUE(row.lower_bound);
  EXPECT_EQ(row.fit(), Fit::open);
  EXPECT_THAT(
      whatif_verdict(programs, answered).at(0),
      StartsWith("A lower bound: default settings reserve at least 400.0 MiB of 1.4 GiB allowed in a limit "
                 "of 1.4 GiB, and the file itself shows 1.6 GiB reserved"));
  const Json json = whatif_json(programs, answered);
  EXPECT_EQ(json["rows"][0]["lower_bound"], true);
  EXPECT_TRUE(json["rows"][0]["fits"].is_null());
  EXPECT_EQ(json["held"]["reserved_bytes"], 1600_MiB);
  EXPECT_EQ(json["held"]["live_bytes"], 400_MiB);
  EXPECT_EQ(json["held"]["returnable_bytes"], 1000_MiB);
  EXPECT_EQ(json["held"]["segments"][0]["largest_free_bytes"], 200_MiB);

  const auto verified = verify_recording(file);
  ASSERT_EQ(verified.size(), 1u);
  EXPECT_FALSE(verified[0].checked);
}

TEST_F(RecordingTest, WhatDoesNotFitAtALowerBoundDoesNotFit) {
  const auto programs = read_client_programs(written(state_only()));
  const WhatIfAnswer answered = answer(programs, {""}, {}, 300_MiB);
  EXPECT_EQ(answered.rows.at(0).fit(), Fit::no);
  EXPECT_THAT(whatif_verdict(programs, answered).at(0), StartsWith("Does not fit"));
}

TEST_F(RecordingTest, AFileWithoutHistoryIsAnsweredToo) {
  TorchSnapshot snapshot = state_only();
  snapshot.traces.clear();
  const auto programs = read_client_programs(written(snapshot));
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_FALSE(programs[0].has_history);
  EXPECT_THAT(
      held_sentence(programs[0]),
      HasSubstr("1.6 GiB reserved, 400.0 MiB of it live in 1 block and 1.2 GiB idle, of which empty_cache() "
                "gives back 1000.0 MiB; the largest free block is 1000.0 MiB"));
  EXPECT_THROW(read_client_programs(written(TorchSnapshot{})), InputError);
}

// 3 GiB live, 2 GiB asked for with 1 GiB free: the run died there.
TorchSnapshot died() {
  TorchSnapshot snapshot;
  snapshot.frames = {{"load", "/home/u/train.py", 10}};
  snapshot.stacks = {{}, {0}};
  hold(snapshot, 8_GiB, 3_GiB);
  TraceEntry failure = entry(Action::oom, 1_GiB, 2_GiB, 7);
  failure.stack = 1;
  snapshot.traces[0].push_back(failure);
  return snapshot;
}

TEST_F(RecordingTest, AFailureComesFirstAndItsOwnSettingsNeverFit) {
  const auto programs = read_client_programs(written(died()));
  ASSERT_EQ(programs.at(0).failures.size(), 1u);
  const WhatIfAnswer answered = answer(programs, {"", "expandable_segments:True"});
  EXPECT_EQ(answered.rows[0].fit(), Fit::no);
  EXPECT_TRUE(answered.rows[0].failed_in_recording);
  EXPECT_EQ(answered.rows[1].fit(), Fit::no);  // it fails again
  EXPECT_THAT(
      whatif_verdict(programs, answered).at(0),
      StartsWith("The recorded program ran out of memory: 2.00 GiB asked for at train.py:10 load, with "
                 "1024.00 MiB free on the card; 3.0 GiB were live in 1 block and 3.0 GiB reserved then."));
  const Json json = whatif_json(programs, answered);
  EXPECT_EQ(json["failures"][0]["requested_bytes"], 2_GiB);
  EXPECT_EQ(json["failures"][0]["device_free_bytes"], 1_GiB);
  EXPECT_EQ(json["failures"][0]["live_bytes"], 3_GiB);
  EXPECT_EQ(json["rows"][0]["fits"], false);
  EXPECT_EQ(json["rows"][0]["attempts"], Json::parse("[false]"));
  // 3 GiB and 2 GiB
  EXPECT_EQ(answered.rows[0].smallest, 5_GiB);
}

TEST_F(RecordingTest, OnALargerCardTheFailedRequestSucceeds) {
  const auto programs = read_client_programs(written(died()));
  const WhatIfAnswer answered = answer(programs, {""}, 24_GiB);
  EXPECT_EQ(answered.rows[0].fit(), Fit::yes);
  EXPECT_EQ(served_attempts(answered.rows[0].outcome), "it would");
  EXPECT_THAT(whatif_verdict(programs, answered).at(1),
              StartsWith("All that the recording asked for fits on a card"));
}

TEST_F(RecordingTest, OneDeviceOfSeveralCanBeNamed) {
  TorchSnapshot snapshot;
  hold(snapshot, 1_GiB, 100_MiB, 0);
  hold(snapshot, 2_GiB, 200_MiB, 1);
  const std::string file = written(snapshot);
  EXPECT_EQ(read_client_programs(file).size(), 2u);
  const auto one = read_client_programs(file, {.torch = {}, .device = 1});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].actions.at(0).bytes, 200_MiB);
  EXPECT_THROW(read_client_programs(file, {.torch = {}, .device = 2}), InputError);
}

// R9.1 on a card of 8 GiB: a quarter is 2 GiB, and 3 GiB do not fit.
TEST_F(RecordingTest, AFractionInTheSettingsIsALimit) {
  TorchSnapshot snapshot;
  hold(snapshot, 8_GiB, 3_GiB);
  const auto programs = read_client_programs(written(snapshot));
  const WhatIfAnswer answered = answer(programs, {"per_process_memory_fraction:0.25", ""}, 8_GiB);
  EXPECT_EQ(answered.rows[0].fit(), Fit::no);
  EXPECT_EQ(answered.rows[0].room(), 2_GiB);
  EXPECT_EQ(answered.rows[1].fit(), Fit::yes);
}

// The card's used memory minus what the allocator had, as marks of the recorder say: 1.5 GiB here.
TEST_F(RecordingTest, MarksMeasureWhatLiesOutsideTheAllocator) {
  TorchSnapshot snapshot;
  hold(snapshot, 8_GiB, 3_GiB);
  const std::string file = written(snapshot);
  const auto marks = [&](Bytes first, Bytes second) {
    std::ofstream out{folder.file("x.marks.json")};
    for (const auto& [text, used] :
         {std::pair{R"({"marks": [{"label": "a", "t_us": 5, "mem_get_info": [)", first},
          std::pair{R"(, {"label": "b", "t_us": 6, "mem_get_info": [)", second}}) {
      out << text << 24_GiB - used << ", " << 24_GiB << "]}";
    }
    out << "]}";
  };
  marks(4608_MiB, 4608_MiB);
  const auto programs = read_client_programs(file);
  EXPECT_EQ(programs.at(0).outside, 1536_MiB);
  const WhatIfRow row = answer(programs, {""}, 8_GiB).rows.at(0);
  EXPECT_EQ(row.usable, 8_GiB - 1536_MiB);
  EXPECT_STREQ(context_from(row.card), "recording");
}

// Both ranks of a program on two cards, with NCCL: 1,693,319,168 B lie outside, not a context of 527 MiB.
TEST(RecordedRanks, HoldNcclAndHandlesOutsideTheAllocator) {
  const fs::path file = kShared / "data/programs-h200/ddp_w2.rank0.pickle.gz";
  if (!fs::exists(file)) GTEST_SKIP() << file << " is not there";
  const auto programs = read_client_programs(file);
  ASSERT_TRUE(programs.at(0).outside);
  EXPECT_NEAR(static_cast<double>(*programs[0].outside), 1'693'319'168.0, 2.0 * 1_MiB);
}

// The message of PyTorch's own format: total 4.00 GiB, 100 MiB free, 3.41 GiB this process, of them 2.9 GiB
// reserved.
TEST(OomCardTest, TakesCardLimitAndOthersFromTheMessage) {
  const std::string text =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity "
      "of 4.00 "
      "GiB of which 96.00 MiB is free. Process 1234 has 500.00 MiB memory in use. Including non-PyTorch "
      "memory, this "
      "process has 3.41 GiB memory in use. 3.00 GiB allowed; Of the allocated memory 2.50 GiB is allocated "
      "by PyTorch, "
      "and 400.00 MiB is reserved by PyTorch but unallocated.";
  const OomCard found = read_oom_card(text, "m.txt");
  EXPECT_EQ(found.card.capacity, 4_GiB);
  EXPECT_EQ(found.limit, 3_GiB);
  const double mib = 1_MiB;
  EXPECT_NEAR(static_cast<double>(found.card.context) / mib, 3.41 * 1024 - 2960, 1);
  EXPECT_NEAR(static_cast<double>(found.card.others) / mib, 4096 - 96 - 3.41 * 1024, 1);
  EXPECT_FALSE(found.card.context_assumed);
  EXPECT_THROW(read_oom_card("all is well", "m.txt"), InputError);
  EXPECT_THROW(read_oom_card("RuntimeError: CUDA error: out of memory", "m.txt"), InputError);
}

struct SharedCase {
  const char* file;
  bool checked;
  const char* warning;
};
void PrintTo(const SharedCase& c, std::ostream* out) { *out << c.file; }

class SharedCases : public testing::TestWithParam<SharedCase> {};

// The right answers of ../shared/cases: what no replay needs refuses no file.
TEST_P(SharedCases, AreReplayed) {
  const SharedCase& c = GetParam();
  const fs::path file = kShared / "cases/snapshots" / c.file;
  if (!fs::exists(file)) GTEST_SKIP() << file << " is not there";
  const VerifiedRecording verified = verify_recording(file).at(0);
  EXPECT_EQ(verified.checked, c.checked);
  EXPECT_TRUE(verified.replay.exact());
  const auto programs = read_client_programs(file);
  if (*c.warning == '\0') {
    EXPECT_THAT(verified.replay.warnings, ElementsAre());
  } else {
    EXPECT_THAT(verified.replay.warnings,
                ElementsAre(testing::AllOf(HasSubstr(c.warning), HasSubstr(c.file))));
    EXPECT_EQ(programs.at(0).warnings, verified.replay.warnings);
  }
  const WhatIfAnswer answered = answer(programs, {}, {}, 1400_MiB);
  EXPECT_EQ(answered.rows.at(0).lower_bound, !c.checked);
  const std::string first = whatif_verdict(programs, answered).at(0);
  EXPECT_EQ(first.starts_with("A lower bound"), !c.checked) << first;
}

INSTANTIATE_TEST_SUITE_P(Snapshots, SharedCases,
                         testing::Values(SharedCase{"line-unsigned.pickle", true, ""},
                                         SharedCase{"conf-hip-key.pickle", true, "release_lock_on_hipmalloc"},
                                         SharedCase{"state-only-snapshot-entry.pickle", false, ""}),
                         [](const auto& test) { return "case" + std::to_string(test.index); });

}  // namespace
}  // namespace vramlab
