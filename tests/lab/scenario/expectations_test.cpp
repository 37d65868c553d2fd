#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/json.hpp"
#include "lab/kinds/training/run.hpp"
#include "tests/lab/scenario_rig.hpp"

namespace vramlab {
namespace {

CheckedExpectation check_one(const std::string& expectation) {
  const std::string text =
      bent_scenario("{\"policy\": \"fixed\", \"metric\": \"ooms\", \"equals\": 0}", expectation);
  return check_expectations(read_seeds(parse_document(text, "small.json"))).at(0);
}

TEST(Expectations, HoldAMetricAgainstItsBounds) {
  EXPECT_TRUE(check_one(R"({"policy": "fixed", "metric": "iterations", "min": 100, "max": 100})").ok);
  EXPECT_FALSE(check_one(R"({"policy": "fixed", "metric": "iterations", "min": 101})").ok);
  EXPECT_FALSE(check_one(R"({"policy": "fixed", "metric": "iterations", "max": 99})").ok);
  EXPECT_FALSE(check_one(R"({"policy": "fixed", "metric": "peak_allocated_ratio", "equals": 0.75})").ok);
  EXPECT_TRUE(
      check_one(
          R"({"policy": "fixed", "metric": "peak_allocated_ratio", "equals": 0.75, "tolerance": 0.0021})")
          .ok);
}

TEST(Expectations, HoldTheFinalValueOfAParameter) {
  const CheckedExpectation checked = check_one(R"({"policy": "oracle", "final": "batch", "equals": 9})");
  EXPECT_TRUE(checked.ok);
  EXPECT_EQ(checked.metric, "final batch");
  EXPECT_EQ(checked.value, 9);
  EXPECT_EQ(checked.bound, "= 9");
}

CheckedExpectation check_one_from_14(const std::string& expectation) {
  std::string text =
      bent_scenario("{\"policy\": \"fixed\", \"metric\": \"ooms\", \"equals\": 0}", expectation);
  const std::string start = "\"batch\": 8";
  text.replace(text.find(start), start.size(), "\"batch\": 14");
  return check_expectations(read_seeds(parse_document(text, "small.json"))).at(0);
}

// 14 samples take 1000 + 14 * 810 = 12,340 MiB of 10,000: the first step fails. From 8, below the band, the
// rule's first change is one step of 2.
TEST(Expectations, HoldChangesAndFailedSteps) {
  EXPECT_TRUE(check_one_from_14(R"({"policy": "fixed", "oom": 1, "equals": 1})").ok);
  EXPECT_TRUE(check_one(R"({"policy": "rule", "adjustment": 1, "parameter": "batch", "equals": 10})").ok);
  EXPECT_FALSE(check_one(R"({"policy": "fixed", "oom": 1, "min": 0})").ok);  // there is none
  EXPECT_FALSE(check_one(R"({"policy": "fixed", "adjustment": 1, "min": 0})").ok);
  const TrainingScenario scenario = read_training(parse_document(bent_scenario(), "small.json"));
  const TrainingRun run = run_policy(scenario, scenario.policies.at(1)).run;
  EXPECT_EQ(check_one(R"({"policy": "rule", "adjustment": 1, "min": 1})").value,
            static_cast<double>(run.adjustments.at(0).iteration));
}

TEST(Expectations, HoldAFigureAgainstThatOfAnotherRun) {
  const CheckedExpectation checked =
      check_one(R"({"policy": "fixed", "metric": "iterations", "relative_to": "oracle", "equals": 1})");
  EXPECT_TRUE(checked.ok);
  EXPECT_EQ(checked.metric, "iterations / that of oracle");
  EXPECT_EQ(ratio(0, 0), 1);
  EXPECT_EQ(ratio(6, 4), 1.5);
}

// 2 of 4 seeds hold "<= 5".
TEST(Expectations, HoldInAShareOfTheSeeds) {
  Expectation expectation{.policy = "p", .name = "ooms", .share = 0.5, .max = 5};
  const std::vector<double> values{4, 5, 6, std::nan("")};
  EXPECT_TRUE(check_values(expectation, values).ok);
  EXPECT_EQ(check_values(expectation, values).value, 0.5);
  EXPECT_EQ(check_values(expectation, values).bound, "share of 4 seeds with <= 5, >= 0.5");
  expectation.share = 0.51;
  EXPECT_FALSE(check_values(expectation, values).ok);
}

// Shares are of a whole, counts begin at 0, and batches of this scenario lie within 2 and 64.
TEST(Expectations, FailWhereNoValueCouldBreakThem) {
  for (const char* empty :
       {R"("metric": "peak_reserved_ratio", "max": 85)", R"("metric": "peak_allocated_ratio", "max": 1)",
        R"("metric": "ooms", "min": -1)", R"("metric": "ooms", "min": 0)",
        R"("metric": "finished", "equals": 1, "tolerance": 1)", R"("metric": "regret", "max": 1.5)",
        R"("metric": "peak_allocated_ratio", "relative_to": "oracle", "min": 0)",
        R"("final": "batch", "min": 2)", R"("final": "batch", "min": 1, "max": 100)"}) {
    const CheckedExpectation checked = check_one(std::string{R"({"policy": "fixed", )"} + empty + "}");
    EXPECT_FALSE(checked.ok) << empty;
    ASSERT_FALSE(checked.around.empty()) << empty;
    EXPECT_THAT(checked.around[0], testing::HasSubstr("can never fail: ")) << empty;
  }
  for (const char* good :
       {R"("metric": "peak_allocated_ratio", "max": 0.99)", R"("metric": "ooms", "max": 100)",
        R"("metric": "min_headroom_bytes", "min": 0)", R"("metric": "regret", "max": 0.99)",
        R"("metric": "peak_allocated_ratio", "relative_to": "oracle", "max": 1.5)",
        R"("final": "batch", "min": 3)", R"("metric": "peak_reserved_ratio", "max": 1)"}) {
    EXPECT_TRUE(check_one(std::string{R"({"policy": "fixed", )"} + good + "}").ok) << good;
  }
}

std::vector<CheckedExpectation> check_all(const std::string& from, const std::string& to) {
  return check_expectations(read_seeds(parse_document(bent_scenario(from, to), "small.json")));
}

// The run has 100 steps of 100 ms.
TEST(Expectations, WhatTheScenarioDeclaresMustComeInTheRun) {
  const std::string at = "\"policies\": [";
  const auto unmet = [&](const std::string& more) {
    std::vector<std::string> where;
    for (const CheckedExpectation& one : check_all(at, more + at)) {
      if (!one.ok) where.push_back(one.metric + ":" + one.around.at(0));
    }
    return where;
  };
  using testing::ElementsAre;
  using testing::HasSubstr;
  EXPECT_THAT(unmet(""), testing::IsEmpty());
  EXPECT_THAT(
      unmet(R"("faults": {"leak": {"bytes_per_step": 1, "from": 101}},)"),
      ElementsAre(HasSubstr("/faults/leak:  never comes: comes at iteration 101, and the run has 100")));
  EXPECT_THAT(unmet(R"("faults": {"leak": {"bytes_per_step": 1, "from": 100}},)"), testing::IsEmpty());
  EXPECT_THAT(unmet(R"("faults": {"restart": {"after": 500}},)"), ElementsAre(HasSubstr("/faults/restart")));
  EXPECT_THAT(unmet(R"("faults": {"outliers": {"bytes": "1MiB", "chance": 0.000001}},)"),
              ElementsAre(HasSubstr("meets none of the run's 100 iterations")));
  const auto phase = [&](int every) {
    return check_all(
        "\"iterations\": 100",
        R"("iterations": 100, "phases": [{"name": "validation", "every": )" + std::to_string(every) + "}]");
  };
  EXPECT_EQ(phase(100).size(), 1U);
  ASSERT_EQ(phase(101).size(), 2U);
  EXPECT_EQ(phase(101)[1].metric, "/workload/phases/0");
  const auto other = [&](double from) {
    return check_all("\"context\": 0", "\"context\": 0, \"others\": [{\"bytes\": \"1MiB\", \"from_s\": " +
                                           std::to_string(from) + "}]");
  };
  EXPECT_EQ(other(9).size(), 1U);
  ASSERT_EQ(other(11).size(), 2U);
  EXPECT_THAT(other(11)[1].around.at(0), HasSubstr("the process that comes at 11 s: the run ends at 10"));
}

// 14 samples take more than there is: ten steps fail in a row.
TEST(Expectations, AnEarlyEndFailsUnlessItIsExpected) {
  const auto check_14 = [](const std::string& expectations) {
    std::string text =
        bent_scenario("{\"policy\": \"fixed\", \"metric\": \"ooms\", \"equals\": 0}", expectations);
    text.replace(text.find("\"batch\": 8"), 10, "\"batch\": 14");
    std::size_t failed = 0;
    for (const auto& one : check_expectations(read_seeds(parse_document(text, "small.json")))) {
      if (!one.ok) ++failed;
    }
    return failed;
  };
  const std::string ooms = R"({"policy": "fixed", "metric": "ooms", "equals": 10})";
  EXPECT_EQ(check_14(ooms), 1U);
  EXPECT_EQ(check_14(ooms + R"(, {"policy": "fixed", "metric": "finished", "equals": 0})"), 0U);
  EXPECT_EQ(check_14(ooms + R"(, {"policy": "fixed", "metric": "finished", "max": 0.5})"), 0U);
  EXPECT_EQ(check_14(ooms + R"(, {"policy": "fixed", "metric": "finished", "min": 0})"), 2U);
}

// Kinds without a tuner have no adjustments, and no step that a number could name.
TEST(Expectations, OfOtherKindsAreOnMetricsAlone) {
  for (const char* key : {"final", "adjustment", "oom"}) {
    const std::string file = VRAMLAB_SOURCE_DIR "/scenarios/epoch-seven-billion.json";
    Json json = read_json_file(file);
    json["expect"][0][key] = 1;
    try {
      read_seeds(parse_document(json.dump(), file));
      FAIL() << key;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string{"/expect/0/"} + key + ": unknown key."));
    }
  }
}

}  // namespace
}  // namespace vramlab
