// Programs replayed: cases whose right values others assert (K1), written as allocation scripts.
#include "recordings/replay/program_replay.hpp"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "recordings/scripts/allocation_script.hpp"

namespace vramlab {
namespace {

ClientProgram script(const std::string& lines) {
  return parse_allocation_script("op,id,bytes,stream,pool,text\n" + lines, "case.csv");
}

ReplaySetup with(const std::string& conf, Bytes usable = kNeverFull - kContextBytes) {
  ReplaySetup setup;
  setup.settings = parse_allocator_settings(conf);
  setup.total = usable + setup.context;
  return setup;
}

Bytes peak_reserved(const ProgramOutcome& outcome) {
  return static_cast<Bytes>(outcome.stats.reserved_bytes.all().peak);
}

// K1-20: without the reset between them, the second half would say 1024.
TEST(ProgramReplay, PeaksAreThoseSinceTheLastReset) {
  std::string lines = "reset_peak\n";
  for (const char* id : {"a", "b", "c", "d"}) lines += std::string("alloc,") + id + ",256MiB\n";
  for (const char* id : {"a", "b", "c", "d"}) lines += std::string("free,") + id + "\n";
  lines += "mark,,,,,A\nreset_peak\nalloc,e,256MiB\nalloc,f,256MiB\nfree,e\nmark,,,,,B\n";
  const ProgramOutcome outcome = replay_program(script(lines), with(""));
  ASSERT_EQ(outcome.marks.size(), 2U);
  EXPECT_EQ(outcome.marks[0].stats.allocated_bytes.all().current, 0);
  EXPECT_EQ(outcome.marks[0].stats.allocated_bytes.all().peak, 1_GiB);
  EXPECT_EQ(outcome.marks[1].stats.allocated_bytes.all().current, 256_MiB);
  EXPECT_EQ(outcome.stats.allocated_bytes.all().peak, 512_MiB);
  EXPECT_EQ(outcome.highest_allocated, 1_GiB);
  EXPECT_EQ(outcome.highest_allocated_at, 4U);
}

// K1-22: the same work in another order; a later free of what failed is ignored.
TEST(ProgramReplay, OrderDecidesWhatFits) {
  const std::string b = "alloc,b,1000MiB\nfree,b\n";
  const std::string lines =
      "alloc,x,300MiB\nalloc,y,300MiB\nalloc,z,300MiB\nfree,x\nfree,y\nfree,z\nalloc,p,12MiB\n" + b;
  const ProgramOutcome failed = replay_program(script(lines), with("", 1250_MiB));
  EXPECT_EQ(failed.ooms, 1U);
  ASSERT_TRUE(failed.first_oom);
  EXPECT_EQ(failed.first_oom->action, 7U);
  EXPECT_EQ(failed.first_oom->oom.segment, 1000_MiB);
  EXPECT_EQ(failed.first_oom->oom.device_free, 950_MiB);
  EXPECT_EQ(failed.first_oom->oom.allocated, 12_MiB);
  EXPECT_EQ(failed.first_oom->oom.reserved, 300_MiB);
  const ProgramOutcome expandable = replay_program(script(lines), with("expandable_segments:True", 1250_MiB));
  EXPECT_TRUE(expandable.fits());
  EXPECT_EQ(peak_reserved(expandable), 1020_MiB);
}

// K1-17
TEST(ProgramReplay, AStreamKeepsItsOwnMemory) {
  const auto lines = [](int stream) {
    std::string text;
    for (const char* id : {"a", "b", "c", "d"})
      text += std::string("alloc,") + id + ",1GiB," + std::to_string(stream) + "\n";
    for (const char* id : {"a", "b", "c", "d"}) text += std::string("free,") + id + "\n";
    for (const char* id : {"e", "f", "g", "h"}) text += std::string("alloc,") + id + ",1GiB\n";
    return text;
  };
  EXPECT_EQ(peak_reserved(replay_program(script(lines(1)), with(""))), 8192_MiB);
  EXPECT_EQ(peak_reserved(replay_program(script(lines(0)), with(""))), 4096_MiB);
}

// K1-14, minimal form.
TEST(ProgramReplay, MaxSplitRaisesThePeakAndWinsAfterARelease) {
  const std::string lines =
      "alloc,a,530MiB\nfree,a\nalloc,b,270MiB\nalloc,c,270MiB\nmark,,,,,peak\nempty_cache\n";
  const auto reserved = [&](const std::string& conf) {
    const ProgramOutcome outcome = replay_program(script(lines), with(conf));
    return std::pair(outcome.marks.at(0).stats.reserved_bytes.all().current >> 20,
                     outcome.stats.reserved_bytes.all().current >> 20);
  };
  EXPECT_EQ(reserved(""), (std::pair<std::int64_t, std::int64_t>{800, 800}));
  EXPECT_EQ(reserved("max_split_size_mb:20"), (std::pair<std::int64_t, std::int64_t>{1070, 540}));
  EXPECT_EQ(reserved("expandable_segments:True").second, 540);
}

TEST(ProgramReplay, KeepsWhatIsHeldAtThePeak) {
  const ClientProgram program = script(
      "alloc,a,10MiB\nalloc,b,20MiB\nfree,a\nalloc,c,30MiB\nalloc,d,0\nalloc,huge,2GiB\nfree,b\n"
      "alloc,e,1MiB\nfree,huge\n");
  std::vector<HeldBlock> held;
  const ProgramOutcome outcome = replay_program(program, with("", 1250_MiB), {.held = &held});
  EXPECT_EQ(outcome.ooms, 1u);
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].action, 1u);
  EXPECT_EQ(held[0].size, 20_MiB);
  EXPECT_EQ(held[1].action, 3u);
  EXPECT_EQ(held[1].size, 30_MiB);
  EXPECT_EQ(outcome.highest_allocated, 50_MiB);
  EXPECT_EQ(outcome.highest_allocated_at, 3u);
}

// Requests that failed when the program was recorded are tried, and leave nothing behind.
TEST(ProgramReplay, AttemptsAreNoPartOfTheHistory) {
  ClientProgram program = script("alloc,a,10MiB\nmark,,,,,attempt\nfree,a\nalloc,b,20MiB\n");
  ReplaySetup setup = with("");
  const auto history_of = [&] {
    HistoryRecorder history;
    const ProgramOutcome outcome = replay_program(program, setup, {.history = &history});
    std::vector<std::tuple<TraceEntry::Action, Address, Bytes>> entries;
    for (const TraceEntry& entry : history.entries())
      entries.emplace_back(entry.action, entry.address, entry.size);
    return std::pair(outcome.attempts_served(), entries);
  };
  const auto without = history_of();
  ASSERT_GT(without.second.size(), 4u);
  program.actions[1] = {.bytes = 512_MiB, .kind = ClientAction::Kind::attempt};
  setup.probe_attempts = true;
  const auto with_attempt = history_of();
  EXPECT_EQ(with_attempt.first, 1u);
  EXPECT_EQ(with_attempt.second, without.second);
}

}  // namespace
}  // namespace vramlab
