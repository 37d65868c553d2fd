// A policy as a plugin gives what it gives as a built-in, byte by byte.
#include <gtest/gtest.h>

#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/kinds/training/view.hpp"
#include "recordings/runs/run_trace.hpp"
#include "tests/plugins/loaded.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> scenarios_of(const std::string& kind) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(VRAMLAB_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".json" || entry.path().filename() == "schema.json") continue;
    if (read_json_file(entry.path().string()).value("kind", std::string{}) == kind) {
      files.push_back(entry.path().stem().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string file_of(const std::string& name) { return VRAMLAB_SOURCE_DIR "/scenarios/" + name + ".json"; }

// The same scenario with every policy's twin; labels stay, so that nothing but the name tells them apart.
Json with_twins(Json scenario, const Json& labels) {
  for (std::size_t i = 0; i < scenario["policies"].size(); ++i) {
    Json& policy = scenario["policies"][i];
    policy["label"] = labels[i];
    policy["use"] = policy["use"].get<std::string>() + "-twin";
  }
  return scenario;
}

Json without_expectations(const std::string& name) {
  Json json = read_json_file(file_of(name));
  json.erase("expect");
  return json;
}

template <class Results>
Json labels_of(const Results& results) {
  Json labels = Json::array();
  for (const auto& result : results) labels.push_back(result.label);
  return labels;
}

// A result's text; a twin's name is put back first.
std::string text_of(Json json) {
  for (Json& policy : json["policies"]) {
    auto name = policy["policy"].get<std::string>();
    if (name.ends_with("-twin")) name.resize(name.size() - 5);
    policy["policy"] = name;
  }
  return json.dump(2);
}

std::vector<PolicyResult> all_results(const TrainingScenario& scenario) {
  std::vector<PolicyResult> results;
  for (const PolicyEntry& entry : scenario.policies) results.push_back(run_policy(scenario, entry));
  return results;
}

class TrainingTwins : public testing::TestWithParam<std::string> {};

std::string trace_of(const TrainingScenario& scenario, const TrainingRun& run) {
  std::string text;
  write_trace_jsonl(scenario.setup.bounds, run.iterations, [&](std::string_view piece) { text += piece; });
  return text;
}

// Every policy that the scenario names, and the skeleton.
TEST_P(TrainingTwins, GiveEqualResultsAndTraces) {
  Json json = without_expectations(GetParam());
  json["policies"].push_back({{"use", "skeleton"}});
  const TrainingScenario builtin = read_training(parse_document(json.dump(), file_of(GetParam())));
  Comparison ours{all_results(builtin)};
  const Json twins = with_twins(json, labels_of(ours.policies));
  for (const auto& known : here_and_isolated("twins")) {
    const TrainingScenario plugin = read_training(parse_document(twins.dump(), file_of(GetParam()), known));
    Comparison theirs{all_results(plugin)};
    ASSERT_EQ(theirs.policies.size(), ours.policies.size());
    ASSERT_EQ(theirs.policies.back().policy, "skeleton-twin");
    EXPECT_EQ(text_of(comparison_json(plugin, theirs, {})), text_of(comparison_json(builtin, ours, {})));
    for (std::size_t i = 0; i < ours.policies.size(); ++i) {
      EXPECT_EQ(trace_of(plugin, theirs.policies[i].run), trace_of(builtin, ours.policies[i].run))
          << ours.policies[i].label;
      EXPECT_EQ(theirs.policies[i].run.log, ours.policies[i].run.log);
    }
  }
}

std::string plain(std::string name) {
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Scenarios, TrainingTwins, testing::ValuesIn(scenarios_of("training")),
                         [](const auto& one) { return plain(one.param); });

TEST(Twins, ThereAreTrainingScenarios) { EXPECT_GE(scenarios_of("training").size(), 12u); }

TEST(Twins, SearchersGiveEqualResults) {
  for (const std::string& name : scenarios_of("search")) {
    const Json json = without_expectations(name);
    if (!json.contains("policies")) continue;
    const SearchScenario builtin = read_search(parse_document(json.dump(), file_of(name)));
    const auto ours = compare_searchers(builtin);
    for (const auto& known : here_and_isolated("twins")) {
      const SearchScenario plugin =
          read_search(parse_document(with_twins(json, labels_of(ours)).dump(), file_of(name), known));
      EXPECT_EQ(text_of(search_json(plugin, compare_searchers(plugin))), text_of(search_json(builtin, ours)))
          << name;
    }
  }
}

TEST(Twins, ComposersGiveEqualResults) {
  for (const char* name : {"epoch-skewed", "epoch-lengths"}) {
    const Json json = without_expectations(name);
    const EpochScenario builtin = read_epoch(parse_document(json.dump(), file_of(name)));
    const auto ours = compare_composers(builtin);
    for (const auto& known : here_and_isolated("twins")) {
      const EpochScenario plugin =
          read_epoch(parse_document(with_twins(json, labels_of(ours)).dump(), file_of(name), known));
      EXPECT_EQ(text_of(epoch_json(plugin, compare_composers(plugin))), text_of(epoch_json(builtin, ours)))
          << name;
    }
  }
}

TEST(Twins, AdmittersGiveEqualResults) {
  for (const char* name : {"queue-race", "queue-head-of-line", "queue-wrong-estimates", "queue-mixed-day"}) {
    const Json json = without_expectations(name);
    const JobsScenario builtin = read_jobs(parse_document(json.dump(), file_of(name)));
    const auto ours = compare_queues(builtin);
    for (const auto& known : here_and_isolated("twins")) {
      const JobsScenario plugin =
          read_jobs(parse_document(with_twins(json, labels_of(ours)).dump(), file_of(name), known));
      EXPECT_EQ(text_of(jobs_json(plugin, compare_queues(plugin))), text_of(jobs_json(builtin, ours)))
          << name;
    }
  }
}

}  // namespace
}  // namespace vramlab
