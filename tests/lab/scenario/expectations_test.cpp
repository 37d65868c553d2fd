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
