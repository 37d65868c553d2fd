// Real trainings of a super-resolution network on a card limited to 12 GiB, with the optimizer in the loop:
// fed with what was observed then, each profile must ask for the very changes that were made then.
#include <fstream>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "policies/contract/policy.hpp"
#include "tests/policies/tuner_rig.hpp"

namespace vramlab {
namespace {

using nlohmann::json;

json read_run(const std::string& name) {
  std::ifstream file(std::string(VRAMLAB_SOURCE_DIR) + "/tests/data/policy-runs/" + name + ".json.gz",
                     std::ios::binary);
  boost::iostreams::filtering_istream stream;
  stream.push(boost::iostreams::gzip_decompressor());
  stream.push(file);
  return json::parse(stream);
}

OptionMap settings_of(const json& run) {
  return {{"target_vram_usage", run.at("target").get<double>(), {}},
          {"safety_margin", run.at("margin").get<double>(), {}},
          {"adjustment_frequency", run.at("frequency").get<std::int64_t>(), {}},
          {"min_batch_size", run.at("batch_bounds").at(0).get<std::int64_t>(), {}},
          {"max_batch_size", run.at("batch_bounds").at(1).get<std::int64_t>(), {}},
          {"min_lq_size", run.at("lq_bounds").at(0).get<std::int64_t>(), {}},
          {"max_lq_size", run.at("lq_bounds").at(1).get<std::int64_t>(), {}}};
}

Observation observation_of(const json& row, Bytes total) {
  return {.iteration = row.at("i").get<std::int64_t>(),
          .time = SimTime{0},
          .memory = {.allocated = row.at("allocated").get<Bytes>(),
                     .peak_allocated = row.at("peak_allocated").get<Bytes>(),
                     .reserved = row.at("reserved").get<Bytes>(),
                     .peak_reserved = row.at("peak_reserved").get<Bytes>(),
                     .total = total,
                     .alloc_retries = row.at("retries").get<std::uint64_t>(),
                     .allocator_ooms = row.at("ooms").get<std::uint64_t>()}};
}

struct Replay {
  std::size_t rows = 0;
  std::size_t adjustments = 0;
  std::size_t ooms = 0;
  std::size_t usages = 0;  // decisions whose recorded usage was compared
  Point end;
};

Replay replay(const std::string& name, Point start) {
  const json run = read_run(name);
  const ParameterSpace space = batch_and_lq();
  const PolicyChoice choice{"dual-optimizer", run.at("profile").get<std::string>(), settings_of(run), ""};
  TunerSession session(builtin_policies()->tuners.make(choice, space), space, std::move(start));
  Replay result;
  for (const json& row : run.at("rows")) {
    const Point used{row.at("batch").get<std::int64_t>(), row.at("lq").get<std::int64_t>()};
    EXPECT_EQ(session.point(), used) << "iteration " << row.at("i");
    const bool oom = row.at("oom").get<bool>();
    const StepDecision decision = session.after_step(oom ? StepResult::oom : StepResult::ok,
                                                     observation_of(row, run.at("cap_bytes").get<Bytes>()));
    const Point expected{used[0] + row.at("db").get<std::int64_t>(),
                         used[1] + row.at("dl").get<std::int64_t>()};
    EXPECT_EQ(session.point(), expected) << "iteration " << row.at("i") << ": " << decision.reason;
    if (session.point() != expected) return result;  // what follows would only repeat the fault
    if (row.contains("u") && !row.at("u").is_null()) {
      ++result.usages;
      EXPECT_THAT(decision.reason, testing::HasSubstr("usage " + fixed_point(row.at("u").get<double>(), 3)));
    }
    ++result.rows;
    result.ooms += oom ? 1 : 0;
  }
  result.adjustments = session.adjustments().size();
  result.end = session.point();
  return result;
}

// "Blind growth": 101 changes, two of them after an OOM, and never settled.
TEST(RecordedRuns, BlindFrom8And96) {
  const Replay run = replay("blind_from_8_96", {8, 96});
  EXPECT_EQ(run.rows, 1100u);
  EXPECT_EQ(run.adjustments, 101u);
  EXPECT_EQ(run.ooms, 2u);
  EXPECT_EQ(run.usages, 99u);
  EXPECT_EQ(run.end, (Point{2, 109}));
}

// The "ratchet": 53 changes down to the floor, although the first was enough.
TEST(RecordedRuns, PeakFrom12And128) {
  const Replay run = replay("peak_from_12_128", {12, 128});
  EXPECT_EQ(run.rows, 900u);
  EXPECT_EQ(run.adjustments, 53u);
  EXPECT_EQ(run.ooms, 0u);
  EXPECT_EQ(run.usages, 53u);
  EXPECT_EQ(run.end, (Point{2, 32}));
}

// The same start: two changes, then it holds at 0.802.
TEST(RecordedRuns, SettledFrom12And128) {
  const Replay run = replay("settled_from_12_128", {12, 128});
  EXPECT_EQ(run.rows, 500u);
  EXPECT_EQ(run.adjustments, 2u);
  EXPECT_EQ(run.ooms, 0u);
  EXPECT_EQ(run.usages, 2u);
  EXPECT_EQ(run.end, (Point{10, 130}));
}

}  // namespace
}  // namespace vramlab
