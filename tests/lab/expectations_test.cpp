#include <gtest/gtest.h>

#include "lab/scenario_kinds.hpp"
#include "tests/lab/scenario_rig.hpp"

namespace vramlab {
namespace {

CheckedExpectation check_one(const std::string& expectation) {
  const std::string text =
      bent_scenario("{\"policy\": \"fixed\", \"metric\": \"ooms\", \"equals\": 0}", expectation);
  return check_scenario(ready_scenario({"small.json", text, "training"})).at(0);
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

}  // namespace
}  // namespace vramlab
