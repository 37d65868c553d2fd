#include "lab/comparison.hpp"

#include <gtest/gtest.h>

#include "lab/result_json.hpp"
#include "sim/core/error.hpp"
#include "tests/lab/scenario_rig.hpp"

namespace vramlab {
namespace {

double metric(const Comparison& comparison, const std::string& label, const char* name) {
  return find_metric(comparison.find(label)->metrics, name).value();
}

// Usage 0.10 + 0.081 a sample: 9 (0.829) is the largest batch at or below 0.90.
TEST(Comparison, TheOracleIsTheBestSafeFixedChoice) {
  const Comparison comparison = compare_policies(parse_scenario(bent_scenario(), "small.json"));
  ASSERT_EQ(comparison.policies.back().label, "oracle");
  EXPECT_EQ(comparison.policies.back().run.final_point, Point{9});
  EXPECT_DOUBLE_EQ(metric(comparison, "oracle", "regret"), 0);
  EXPECT_DOUBLE_EQ(metric(comparison, "oracle", "peak_allocated_ratio"), 0.829);
}

// A step takes 100 ms plus the driver calls of the first one; 8 samples a step against 9.
TEST(Comparison, RegretComparesTheWorkDone) {
  const Comparison comparison = compare_policies(parse_scenario(bent_scenario(), "small.json"));
  EXPECT_NEAR(metric(comparison, "fixed", "regret"), 1 - 8.0 / 9.0, 1e-4);
  EXPECT_NEAR(metric(comparison, "fixed", "samples_per_s"), 80, 0.02);
}

TEST(Comparison, MetricsOfAFixedRunAreThoseOfItsStep) {
  const Comparison comparison = compare_policies(parse_scenario(bent_scenario(), "small.json"), {"fixed"});
  EXPECT_EQ(metric(comparison, "fixed", "iterations"), 100);
  EXPECT_EQ(metric(comparison, "fixed", "ooms"), 0);
  EXPECT_DOUBLE_EQ(metric(comparison, "fixed", "peak_allocated_ratio"), 0.748);
  EXPECT_DOUBLE_EQ(metric(comparison, "fixed", "mean_peak_ratio"), 0.748);
  EXPECT_EQ(metric(comparison, "fixed", "min_headroom_bytes"), 2520.0 * 1048576);
  EXPECT_EQ(metric(comparison, "fixed", "adjustments"), 0);
}

// The rule of hand: 8 ↔ 10 at every look, for ever.
TEST(Comparison, CountsEveryTurnOfAFlipFlop) {
  const Comparison comparison = compare_policies(parse_scenario(bent_scenario(), "small.json"), {"rule"});
  EXPECT_EQ(metric(comparison, "rule", "adjustments"), 10);
  EXPECT_EQ(metric(comparison, "rule", "direction_changes"), 9);
}

TEST(Comparison, WithoutASafeChoiceThereIsNoOracle) {
  const Scenario scenario =
      parse_scenario(bent_scenario("\"fixed\": \"1000MiB\"", "\"fixed\": \"9000MiB\""), "small.json");
  EXPECT_FALSE(find_oracle(scenario));
  const Comparison comparison = compare_policies(scenario, {"fixed"});
  EXPECT_EQ(comparison.policies.size(), 1u);
  EXPECT_FALSE(find_metric(comparison.policies[0].metrics, "regret"));
}

TEST(Comparison, TheOracleLeavesRoomForOtherProcesses) {
  const Comparison comparison = compare_policies(parse_scenario(
      bent_scenario("\"context\": 0",
                    "\"context\": 0, \"others\": [{\"from_s\": 2, \"to_s\": 3, \"bytes\": \"3000MiB\"}]"),
      "small.json"));
  EXPECT_EQ(comparison.find("oracle")->run.final_point, Point{7});  // 1000 + 7 · 810 of 7000 MiB
}

TEST(Comparison, RefusesALabelThatIsNotThere) {
  EXPECT_THROW(compare_policies(parse_scenario(bent_scenario(), "small.json"), {"fixd"}), InputError);
}

TEST(Comparison, EqualInputGivesEqualBytes) {
  const auto text = [] {
    const Scenario scenario = parse_scenario(bent_scenario(), "small.json");
    return comparison_json(scenario, compare_policies(scenario), {}).dump();
  };
  EXPECT_EQ(text(), text());
}

}  // namespace
}  // namespace vramlab
