// The oracle of epochs in which a tuner moves what a batch may take.
#include <cmath>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/epoch/spec.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

// 12 samples of 100 MiB on a card of 1 GiB, which holds 10 of them; a batch takes 50 ms, however many it has.
Json twelve_samples() {
  return Json::parse(R"({
    "version": 1, "kind": "epoch", "name": "twelve", "device": {"total": "1GiB", "context": 0},
    "workload": {"sizes": {"per_token": "1MiB", "floor_ms": 50},
                 "data": {"samples": 12, "tasks": [{"name": "T1", "shortest": 100, "longest": 100}]}},
    "policies": [{"use": "planned-batches", "profile": "fixed", "batch_size": 12, "label": "tuned",
                  "tuner": {"use": "fixed", "batch_size": {"from": 1, "to": 12, "start": 3}}}]
  })");
}

ScenarioDocument twelve_document(const Json& json) { return parse_document(json.dump(), "twelve.json"); }

std::unique_ptr<Experiment> compared_twelve(const Json& json, const Question& question = {}) {
  auto experiment = read_experiment(twelve_document(json), question);
  experiment->run({});
  return experiment;
}

// Batches of 6 to 10 samples are two, which no other size betters; 11 and 12 do not fit. Of equals the
// smallest.
TEST(EpochOracle, IsTheFixedLimitThatArithmeticGives) {
  const auto experiment = compared_twelve(twelve_samples());
  const Json rows = experiment->json()["policies"];
  ASSERT_EQ(rows.size(), 2);
  const Json& oracle = rows[1];
  EXPECT_EQ(oracle["label"], "oracle");
  EXPECT_EQ(oracle["policy"], "oracle");
  EXPECT_EQ(oracle["tuner"]["moves"], "batch_size");
  EXPECT_EQ(oracle["tuner"]["final"], 6);
  EXPECT_NEAR(oracle["metrics"]["samples_per_s"].get<double>(), 12 / 0.1, 0.5);  // less the driver's calls
  EXPECT_EQ(oracle["metrics"]["regret"], 0);
  EXPECT_EQ(oracle["oracle"]["runs"], 12);
  EXPECT_EQ(oracle["oracle"]["exhaustive"], true);
  EXPECT_NEAR(rows[0]["metrics"]["regret"].get<double>(), 0.5, 0.002);  // four batches of 3
  EXPECT_FALSE(oracle.contains("finished"));  // it is what the others are measured by
  EXPECT_EQ(experiment->json()["best"], "tuned");
  EXPECT_THAT(experiment->endings(),
              testing::Contains(
                  "oracle is fixed with at most 6 samples in a batch, the best of all 12 fixed choices."));
}

TEST(EpochOracle, MayBeAComposerAsItIs) {
  Json json = twelve_samples();
  json["policies"][0]["tuner"]["batch_size"] = {{"from", 1}, {"to", 3}};
  json["policies"].push_back(
      {{"use", "planned-batches"}, {"profile", "fixed"}, {"batch_size", 6}, {"label", "six"}});
  const Json oracle = compared_twelve(json)->json()["policies"][2];
  EXPECT_EQ(oracle["label"], "oracle");
  EXPECT_FALSE(oracle.contains("tuner"));
  EXPECT_NEAR(oracle["metrics"]["samples_per_s"].get<double>(), 120, 0.5);
  EXPECT_EQ(oracle["oracle"]["runs"], 3 + 1);
}

TEST(EpochOracle, WhereNothingIsSafeThereIsNoneAndNoRegret) {
  Json json = twelve_samples();
  json["device"]["total"] = "128MiB";
  json["workload"]["phases"] = Json::parse(R"([{"name": "validation", "every": 1, "samples": 12}])");
  const Json rows = compared_twelve(json)->json()["policies"];
  ASSERT_EQ(rows.size(), 1);
  EXPECT_FALSE(rows[0]["metrics"].contains("regret"));
}

// Unequal samples under budgets, and another process for a while.
EpochScenario budgets(const std::string& from, const std::string& to) {
  Json json = twelve_samples();
  json["workload"]["data"] =
      Json::parse(R"({"samples": 300, "tasks": [{"name": "T1", "shortest": 5, "longest": 60}]})");
  json["device"]["others"] = Json::parse(R"([{"from_s": 0.4, "to_s": 1, "bytes": "300MiB"}])");
  json["policies"] = Json::parse(R"([{"use": "memory-aware-sampler", "profile": "dense", "label": "tuned",
    "tuner": {"use": "aimd", "budget": {}}}])");
  json["policies"][0]["tuner"]["budget"] = {{"from", from}, {"to", to}};
  return read_epoch(twelve_document(json));
}

/// The most samples a second without an OOM, and the budget at which it is reached first.
std::pair<double, std::int64_t> best_budget(const EpochScenario& scenario, std::int64_t step) {
  std::pair<double, std::int64_t> best{0, 0};
  const Parameter range = scenario.tuners.at("tuned").tuning.space.parameters.front();
  for (std::int64_t mib = range.low; mib <= range.high; mib += step) {
    EpochScenario fixed = scenario;
    BatchTuner& tuner = fixed.tuners.at("tuned");
    tuner.choice = {.use = "fixed", .profile = {}, .options = {}, .where = {}};
    tuner.tuning.start = {mib};
    const EpochResult result = run_composer(fixed, fixed.policies.front());
    const Figures figures{result.metrics};
    if (figures["ooms"] > 0 || figures["untrained_samples"] > 0) continue;
    if (figures["samples_per_s"] > best.first) best = {figures["samples_per_s"], mib};
  }
  return best;
}

// 101 budgets are all run.
TEST(EpochOracle, IsTheBestOfAFewBudgets) {
  const EpochScenario scenario = budgets("500MiB", "600MiB");
  const auto oracle = find_epoch_oracle(scenario, 2);
  ASSERT_TRUE(oracle);
  EXPECT_EQ(oracle->limit->tuning.start, Point{best_budget(scenario, 1).second});
  EXPECT_EQ(oracle->note.runs, 101);
  EXPECT_TRUE(oracle->note.tried_all);
}

// Of 769 budgets every fourth may be tried and some are, at first every 48th: none of these is better.
TEST(EpochOracle, SearchesManyBudgetsTheSameOnAnyNumberOfThreads) {
  const EpochScenario scenario = budgets("256MiB", "1GiB");
  const double most = best_budget(scenario, 48).first;
  const auto one = find_epoch_oracle(scenario, 1);
  const auto three = find_epoch_oracle(scenario, 3);
  ASSERT_TRUE(one && three);
  EXPECT_FALSE(one->note.tried_all);
  EXPECT_LT(one->note.runs, 60);
  EXPECT_EQ(oracle_json(one->note).dump(), oracle_json(three->note).dump());
  EXPECT_EQ(one->limit->tuning.start, three->limit->tuning.start);
  EpochScenario fixed = scenario;
  fixed.tuners.at("tuned") = *one->limit;
  const EpochResult result = run_composer(fixed, fixed.policies.front());
  EXPECT_GE(*find_metric(result.metrics, "samples_per_s"), most);
  EXPECT_EQ(find_metric(result.metrics, "ooms"), 0);
}

TEST(EpochOracle, IsLeftOutWhereNobodyAsksAndMayBeExpectedOf) {
  auto spared = read_experiment(twelve_document(twelve_samples()));
  spared->leave_out_oracle();
  spared->run({});
  EXPECT_EQ(spared->json()["policies"].size(), 1);
  Json json = twelve_samples();
  json["expect"] = Json::parse(R"([{"policy": "oracle", "metric": "final_batch_size", "equals": 6},
                                   {"policy": "tuned", "metric": "regret", "equals": 0.5, "tolerance": 0.002}])");
  for (const CheckedExpectation& one : check_expectations(read_seeds(twelve_document(json))))
    EXPECT_TRUE(one.ok) << one.metric;
  json["policies"][0]["label"] = "oracle";
  try {
    read_experiment(twelve_document(json));
    ADD_FAILURE() << "the oracle's label was taken";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/policies/0/label"));
  }
}

}  // namespace
}  // namespace vramlab
