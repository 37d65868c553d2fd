#include <gtest/gtest.h>

#include "lab/experiment.hpp"
#include "lab/json.hpp"
#include "lab/scenario/expectations.hpp"
#include "tests/lab/scenario_rig.hpp"

namespace vramlab {
namespace {

std::string at(const std::string& text, const std::vector<std::string>& path) {
  const auto place = json_place(text, path);
  return place ? text.substr(place->begin, place->end - place->begin) : "none";
}

TEST(JsonPlace, FindsAValueAmongCommentsAndNestedOnes) {
  const std::string text =
      "// {\"a\": 0}\n{\"x\": {\"a\": [9]}, /* \"a\" */ \"a\": [1, {\"b\\\"c\": \"},\"}, -2.5e3], \"z\": "
      "true}";
  EXPECT_EQ(at(text, {"a", "0"}), "1");
  EXPECT_EQ(at(text, {"a", "1", "b\"c"}), "\"},\"");
  EXPECT_EQ(at(text, {"a", "2"}), "-2.5e3");
  EXPECT_EQ(at(text, {"x", "a"}), "[9]");
  EXPECT_EQ(at(text, {"z"}), "true");
  EXPECT_EQ(at(text, {"a", "3"}), "none");
  EXPECT_EQ(at(text, {"b"}), "none");
}

UpdatedText update(const std::string& text) {
  const SeededExperiments scenario = read_seeds(parse_document(text, "small.json"));
  return updated_expectations(text, scenario.front()->scenario().expectations, check_expectations(scenario));
}

// The scenario runs 100 iterations; only the wrong exact values change, and nothing else of the text.
TEST(UpdatedExpectations, ChangeWrongExactValuesOnly) {
  const std::string old = "[{\"policy\": \"fixed\", \"metric\": \"ooms\", \"equals\": 0}]";
  const auto with = [&](const std::string& iterations, const std::string& tail) {
    return bent_scenario(old, R"([ // kept
      {"policy": "fixed", "metric": "ooms", "equals":0},
      {"policy": "fixed", "metric": "iterations",  "equals": )" +
                                  iterations + R"( , "tolerance": 2},
      {"policy": "fixed", "metric": "iterations", "max": 10}]  )" +
                                  tail);
  };
  const UpdatedText updated = update(with("7", "/* kept */"));
  EXPECT_EQ(updated.text, with("100", "/* kept */"));
  EXPECT_EQ(updated.changes, std::vector<std::string>{"fixed iterations: 7 -> 100"});
  EXPECT_TRUE(update(with("98", "")).changes.empty());  // within its tolerance
}

}  // namespace
}  // namespace vramlab
