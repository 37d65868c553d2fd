// What the documents show runs as it stands there.
#include <gtest/gtest.h>

#include "lab/experiment.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/kinds/training/spec.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

// The text between ```jsonc fences.
std::vector<std::string> json_blocks(const std::string& document) {
  std::vector<std::string> blocks;
  const std::string fence = "```jsonc\n";
  for (std::size_t at = document.find(fence); at != std::string::npos; at = document.find(fence, at)) {
    at += fence.size();
    const std::size_t end = document.find("```", at);
    blocks.push_back(document.substr(at, end - at));
    at = end;
  }
  return blocks;
}

TEST(Documents, TheScenarioSkeletonRuns) {
  const auto blocks = json_blocks(read_input_file(VRAMLAB_SOURCE_DIR "/docs/scenarios.md"));
  ASSERT_FALSE(blocks.empty());
  const TrainingScenario scenario =
      read_training(parse_document(blocks.front(), VRAMLAB_SOURCE_DIR "/scenarios/example.json"));
  const PolicyResult result = run_policy(scenario, scenario.policies.front());
  EXPECT_EQ(result.run.iterations.size(), static_cast<std::size_t>(scenario.setup.iterations));
}

TEST(Documents, EverySkeletonButTheFirstHoldsItsExpectations) {
  const auto blocks = json_blocks(read_input_file(VRAMLAB_SOURCE_DIR "/docs/scenarios.md"));
  ASSERT_GE(blocks.size(), kinds().size());
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    const std::string kind = parse_json(blocks[i], "block")["kind"].get<std::string>();
    for (const CheckedExpectation& one : check_expectations(
             read_seeds(parse_document(blocks[i], VRAMLAB_SOURCE_DIR "/scenarios/example.json")))) {
      EXPECT_TRUE(one.ok) << kind << ": " << one.policy << ' ' << one.metric << ' ' << one.value;
    }
  }
}

TEST(Documents, EveryMetricOfASearchIsExplained) {
  const std::string document = read_input_file(VRAMLAB_SOURCE_DIR "/docs/metrics.md");
  for (const std::string& name : names_of(search_metric_table())) {
    EXPECT_NE(document.find("`" + name + "`"), std::string::npos) << name;
  }
}

TEST(Documents, EveryMetricOfAnEpochIsExplained) {
  const std::string document = read_input_file(VRAMLAB_SOURCE_DIR "/docs/metrics.md");
  for (const std::string& name : names_of(epoch_metric_table())) {
    EXPECT_NE(document.find("`" + name + "`"), std::string::npos) << name;
  }
}

TEST(Documents, EveryMetricOfAQueueIsExplained) {
  const std::string document = read_input_file(VRAMLAB_SOURCE_DIR "/docs/metrics.md");
  for (const std::string& name : names_of(jobs_metric_table())) {
    EXPECT_NE(document.find("`" + name + "`"), std::string::npos) << name;
  }
}

TEST(Documents, EveryMetricIsExplained) {
  const std::string document = read_input_file(VRAMLAB_SOURCE_DIR "/docs/metrics.md");
  for (const std::string& name : names_of(training_metric_table())) {
    EXPECT_NE(document.find("| `" + name + "` |"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace vramlab
