// The cause that a message's figures lead to, for reported and recorded failures.
#include "lab/oom/diagnosis.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/oom/reasoning.hpp"
#include "recordings/logs/oracle_log.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kFixtures = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data/oracle";
const fs::path kShared = fs::path(VRAMLAB_SOURCE_DIR) / "../shared/data/oracle";

OomDiagnosis diagnose(const std::string& text) { return diagnose_oom(parse_oom_message(text), "text"); }

OomDiagnosis diagnose(const OutOfMemory& oom, const OomSurroundings& around = {}) {
  return diagnose(oom_message(oom, around));
}

Bytes figure(const OomDiagnosis& diagnosis, const std::string& name) {
  for (const ExplainedFigure& f : diagnosis.figures) {
    if (f.name == name) return f.bytes;
  }
  ADD_FAILURE() << "no figure " << name;
  return 0;
}

OomAdvice::Helps helps(const OomDiagnosis& diagnosis, const std::string& measure) {
  for (const OomAdvice& advice : diagnosis.advice) {
    if (advice.measure.find(measure) != std::string::npos) return advice.helps;
  }
  ADD_FAILURE() << "no advice on " << measure;
  return OomAdvice::Helps::perhaps;
}

std::size_t broken(const OomDiagnosis& diagnosis) {
  return static_cast<std::size_t>(
      std::count_if(diagnosis.checks.begin(), diagnosis.checks.end(),
                    [](const FigureCheck& check) { return check.outcome == FigureCheck::Outcome::broken; }));
}

// K1-12 (pytorch issue 50185): allocated = reserved, 287 MiB free, 400 MiB asked for. Nothing is idle, so no
// setting of the allocator helps. The card of the report has 10.92 GiB.
TEST(OomDiagnosis, DeadCyclesAreNoFragmentation) {
  OutOfMemory oom;
  oom.segment = 400_MiB;
  oom.device_total = 11'725'000'000;
  oom.device_free = 301'004'226;
  oom.allocated = oom.reserved = 10'905'190'400;
  const OomDiagnosis d = diagnose(oom);
  EXPECT_EQ(d.cause, OomCause::too_big);
  EXPECT_EQ(d.idle, 0u);
  EXPECT_NEAR(static_cast<double>(*d.short_by), 419'430'400.0 - 301'004'226.0, 5243);
  EXPECT_EQ(helps(d, "expandable_segments"), OomAdvice::Helps::no);
  EXPECT_EQ(helps(d, "empty_cache"), OomAdvice::Helps::no);
  EXPECT_EQ(helps(d, "less live memory"), OomAdvice::Helps::yes);
}

// K1-13 (pytorch issue 27600): 381.50 MiB is not a multiple of 2 MiB, as versions before the 2 MiB rounding
// printed. 19 weights, biases and outputs are live; 547 MiB of a card of 7.92 GiB lie outside.
TEST(OomDiagnosis, AnOldMessageIsNoError) {
  const OomDiagnosis d = diagnose(
      "RuntimeError: CUDA out of memory. Tried to allocate 381.50 MiB (GPU 0; 7.92 GiB total capacity; 7.16 "
      "GiB "
      "already allocated; 231.56 MiB free; 452.50 KiB cached)");
  EXPECT_EQ(d.layout, "torch-cached");
  EXPECT_EQ(d.cause, OomCause::too_big);
  EXPECT_EQ(broken(d), 0u);
  EXPECT_EQ(figure(d, "tried"), 400'031'744u);
  EXPECT_EQ(figure(d, "idle"), 463'360u);
}

// K1-22 (pytorch issue 1529, A then B): 288 MiB of a segment pinned by 12 MiB; the card of the case has 1250
// MiB.
TEST(OomDiagnosis, APinnedSegmentIsFragmentation) {
  OutOfMemory oom;
  oom.segment = 1000_MiB;
  oom.device_total = 1250_MiB;
  oom.device_free = 950_MiB;
  oom.allocated = 12_MiB;
  oom.reserved = 300_MiB;
  const OomDiagnosis d = diagnose(oom);
  EXPECT_EQ(d.cause, OomCause::fragmentation);
  EXPECT_EQ(d.idle, 288_MiB);
  EXPECT_EQ(d.short_by, static_cast<std::int64_t>(50_MiB));
  EXPECT_EQ(helps(d, "expandable_segments"), OomAdvice::Helps::perhaps);
  EXPECT_EQ(helps(d, "empty_cache"), OomAdvice::Helps::no);
}

// K1-23 (pytorch issue 111363): 39.10 + 0.417 + 0.0625 = 39.58 > 39.575 = 0.5 · 79.15, with 38 GiB free.
TEST(OomDiagnosis, AFractionIsDeducedWhereItIsNotPrinted) {
  const OomDiagnosis d = diagnose(
      "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacty of 79.15 GiB of which "
      "38.09 GiB is "
      "free. Of the allocated memory 39.10 GiB is allocated by PyTorch, and 427.46 MiB is reserved by "
      "PyTorch but "
      "unallocated.");
  EXPECT_EQ(d.cause, OomCause::fraction_limit);
  EXPECT_THAT(d.verdict, HasSubstr("38.09 GiB are free"));
  EXPECT_THAT(d.verdict, HasSubstr("0.5 fits"));
  EXPECT_EQ(helps(d, "larger memory fraction"), OomAdvice::Helps::yes);
}

// The same with the limit printed, as later versions do.
TEST(OomDiagnosis, APrintedLimitWithRoomElsewhereIsTheCause) {
  OutOfMemory oom;
  oom.segment = 64_MiB;
  oom.device_total = 80_GiB;
  oom.device_free = 38_GiB;
  oom.limit = 40_GiB;
  oom.allocated = 39_GiB;
  oom.reserved = 40_GiB - 32_MiB;
  const OomDiagnosis d = diagnose(oom);
  EXPECT_EQ(d.cause, OomCause::fraction_limit);
  EXPECT_EQ(helps(d, "ending other processes"), OomAdvice::Helps::no);
}

// K1-06: four times 40 MiB under 120 MiB, nothing idle: the limit, and no hint on holes.
TEST(OomDiagnosis, ALimitThatIsFullIsTheLimit) {
  OutOfMemory oom;
  oom.segment = 40_MiB;
  oom.device_total = 24_GiB;
  oom.device_free = 23_GiB;
  oom.limit = 120_MiB;
  oom.allocated = oom.reserved = 120_MiB;
  const OomDiagnosis d = diagnose(oom);
  EXPECT_EQ(d.cause, OomCause::fraction_limit);
  EXPECT_EQ(d.short_by, static_cast<std::int64_t>(40_MiB));
  EXPECT_EQ(helps(d, "expandable_segments"), OomAdvice::Helps::no);
}

TEST(OomDiagnosis, NeighboursThatHoldWhatIsMissingAreTheCause) {
  OutOfMemory oom;
  oom.segment = 2_GiB;
  oom.device_total = 24_GiB;
  oom.device_free = 1_GiB;
  oom.allocated = 2_GiB;
  oom.reserved = 2_GiB + 128_MiB;
  OomSurroundings around;
  around.others = {{4711, 20_GiB}};
  around.own_process = oom.reserved + 500_MiB;
  const OomDiagnosis d = diagnose(oom, around);
  EXPECT_EQ(d.cause, OomCause::other_processes);
  EXPECT_EQ(d.others, 20_GiB);
  EXPECT_EQ(helps(d, "ending other processes"), OomAdvice::Helps::yes);
  EXPECT_EQ(helps(d, "expandable_segments"), OomAdvice::Helps::no);
}

// Idle memory of private pools is out of reach for other requests (R4.12).
TEST(OomDiagnosis, PrivatePoolsAreNamed) {
  OutOfMemory oom;
  oom.segment = 20_MiB;
  oom.device_total = 4_GiB;
  oom.device_free = 6_MiB;
  oom.allocated = 2_GiB;
  oom.reserved = 3_GiB + 500_MiB;
  oom.private_pools_idle = 1_GiB;
  const OomDiagnosis d = diagnose(oom);
  EXPECT_EQ(d.cause, OomCause::fragmentation);
  EXPECT_EQ(d.idle, 1_GiB + 500_MiB);
  EXPECT_THAT(d.advice[0].why, HasSubstr("2.00 GiB were live"));  // the printed 3 GiB include the pools
  EXPECT_EQ(helps(d, "empty_cache"), OomAdvice::Helps::no);
}

// K1-24: larger than any card, and past 2^60 a distinct error.
TEST(OomDiagnosis, HugeRequests) {
  OutOfMemory oom;
  oom.segment = 800'000'000'000'000'000;
  oom.device_total = 80_GiB;
  oom.device_free = 79_GiB;
  EXPECT_EQ(diagnose(oom).cause, OomCause::too_big);
  EXPECT_EQ(diagnose("CUDA out of memory. Tried to allocate more than 1EB memory.").cause,
            OomCause::not_memory);
}

// K2-05: a memory error without figures is one, but nothing tells why.
TEST(OomDiagnosis, WithoutFiguresNothingIsInvented) {
  EXPECT_EQ(diagnose("RuntimeError: CUDA error: out of memory").cause, OomCause::undetermined);
  EXPECT_EQ(diagnose("RuntimeError: CUDA error: device-side assert triggered").cause, OomCause::not_memory);
  EXPECT_EQ(
      diagnose("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes.").cause,
      OomCause::not_memory);
  EXPECT_THROW(diagnose("ValueError: nothing to see"), InputError);
}

TEST(OomDiagnosis, ImpossibleFiguresAreSaidToBe) {
  const auto cause = [](const char* total, const char* free, const char* allocated, const char* idle) {
    return diagnose(
               fmt::format(
                   "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of {} of "
                   "which {} is free. Of the allocated memory {} is allocated by PyTorch, and {} is "
                   "reserved by PyTorch but unallocated.",
                   total, free, allocated, idle))
        .cause;
  };
  EXPECT_EQ(cause("8.00 GiB", "9.00 GiB", "1.00 GiB", "1.00 MiB"), OomCause::inconsistent);
  EXPECT_EQ(cause("8.00 GiB", "1.00 GiB", "7.50 GiB", "1.00 MiB"), OomCause::inconsistent);
  EXPECT_EQ(cause("8.00 GiB", "4.00 GiB", "3.00 GiB", "1.50 GiB"), OomCause::inconsistent);
  // 3.995 + 0.0039 + 4.00 is 7.9989, printed figures alone say 8.004 of 8.00: rounding explains it.
  EXPECT_NE(cause("8.00 GiB", "4.00 GiB", "4.00 GiB", "4.00 MiB"), OomCause::inconsistent);
  EXPECT_EQ(
      diagnose(
          "CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 8.00 GiB total capacity; 6.00 GiB already "
          "allocated; 1.00 MiB free; 5.00 GiB reserved in total by PyTorch)")
          .cause,
      OomCause::inconsistent);
}

// Processes are read one after another, so a small excess over the card is not a contradiction; a large one
// is.
TEST(OomDiagnosis, ProcessesMayExceedTheCardALittle) {
  OutOfMemory oom;
  oom.segment = 64_MiB;
  oom.device_total = 16_GiB;
  oom.device_free = 1_MiB;
  oom.allocated = oom.reserved = 8_GiB;
  OomSurroundings around;
  around.own_process = 8_GiB + 500_MiB;
  around.others = {{1, 8_GiB}};  // 0.5 GiB too much, 1/32 of the card
  EXPECT_EQ(diagnose(oom, around).cause, OomCause::other_processes);
  around.others = {{1, 12_GiB}};
  EXPECT_EQ(diagnose(oom, around).cause, OomCause::inconsistent);
}

/// Causes of every message in a folder of recordings.
std::map<OomCause, int> causes_in(const fs::path& folder) {
  std::map<OomCause, int> causes;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.path().string().ends_with(".json.gz")) continue;
    for (const OracleOperation& op : read_oracle_log(entry.path()).operations) {
      if (op.text.empty() || op.counters.empty()) continue;
      const OomDiagnosis d = diagnose(op.text);
      EXPECT_EQ(broken(d), 0u) << op.text;
      ++causes[d.cause];
    }
  }
  return causes;
}

// All were made under a memory fraction of a card with room, so the limit it is, every time.
TEST(RecordedFailures, OfTheFixturesAreDueToTheLimit) {
  EXPECT_EQ(causes_in(kFixtures), (std::map<OomCause, int>{{OomCause::fraction_limit, 337}}));
}

// In device_1 another process held 75.66 GiB of the card.
TEST(RecordedFailures, OfDevice1AreDueToTheNeighbour) {
  if (!fs::exists(kShared)) GTEST_SKIP() << "no " << kShared;
  EXPECT_EQ(causes_in(kShared),
            (std::map<OomCause, int>{{OomCause::fraction_limit, 1495}, {OomCause::other_processes, 331}}));
}

// Free memory is read first, then each process: parts may exceed the card by what neighbours changed between,
// at most a sixteenth of the card (figure_checks.cpp) and at most what they hold. By hand, in whole bytes.
TEST(FigureChecks, WhatNeighboursMayHaveMovedEndsAtASixteenthAndAtWhatTheyHold) {
  constexpr std::int64_t kGiB = 1LL << 30;
  const auto outcome = [](std::int64_t excess, std::int64_t others) {
    OomMessage message;
    message.others.push_back({});
    OomSizes sizes;
    sizes.total = SizeRange::exactly(16 * kGiB);
    sizes.others = SizeRange::exactly(others);
    sizes.others_listed = true;
    sizes.reserved = SizeRange::exactly(8 * kGiB);
    sizes.own_context = SizeRange::exactly(8 * kGiB - others + excess);  // nothing is free
    const auto checks = check_figures(message, sizes, {});
    const auto one =
        std::ranges::find_if(checks, [](const auto& check) { return check.what.starts_with("free + all"); });
    return one->outcome;
  };
  using Outcome = FigureCheck::Outcome;
  EXPECT_EQ(outcome(0, 2 * kGiB), Outcome::holds);
  EXPECT_EQ(outcome(kGiB, 2 * kGiB), Outcome::explained);  // 16 GiB / 16
  EXPECT_EQ(outcome(kGiB + 1, 2 * kGiB), Outcome::broken);
  EXPECT_EQ(outcome(kGiB / 2, kGiB / 2), Outcome::explained);
  EXPECT_EQ(outcome(kGiB / 2 + 1, kGiB / 2), Outcome::broken);
}

TEST(MemoryStatsDiagnosis, NamesWhatTheCountersCanTell) {
  const Json flat = {{"allocated_bytes.all.current", 100},
                     {"active_bytes.all.current", 100},
                     {"reserved_bytes.all.current", 1000},
                     {"inactive_split_bytes.all.current", 700},
                     {"num_ooms", 2},
                     {"num_alloc_retries", 3}};
  const OomDiagnosis d = diagnose_memory_stats(flat, "stats");
  EXPECT_EQ(d.layout, "memory_stats");
  EXPECT_EQ(d.cause, OomCause::fragmentation);
  EXPECT_EQ(d.idle, 900u);
  const Json nested = {{"allocated_bytes", {{"all", {{"current", 900}}}}},
                       {"reserved_bytes", {{"all", {{"current", 1000}}}}},
                       {"num_ooms", 1}};
  EXPECT_EQ(diagnose_memory_stats(nested, "stats").cause, OomCause::undetermined);
  const Json impossible = {{"allocated_bytes.all.current", 2000}, {"reserved_bytes.all.current", 1000}};
  EXPECT_EQ(diagnose_memory_stats(impossible, "stats").cause, OomCause::inconsistent);
  const Json calm = {{"allocated_bytes.all.current", 1}, {"reserved_bytes.all.current", 2}, {"num_ooms", 0}};
  EXPECT_EQ(diagnose_memory_stats(calm, "stats").cause, OomCause::not_memory);
  EXPECT_THROW(diagnose_memory_stats(Json{{"a", 1}}, "stats"), InputError);
}

}  // namespace
}  // namespace vramlab
