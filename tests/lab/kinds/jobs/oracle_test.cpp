// The oracle of queues whose jobs have tuners and composers.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/jobs/spec.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

// On a card of 8 GiB jobs with a context of 0.5 GiB and 1 GiB + 0.5 GiB a sample: alone a batch of 13 fills
// it, and of two at once both batches together are 10. Steps take 100 ms, and those of two at once share the
// card.
Json small_queue(int jobs, int low, int high) {
  Json json =
      Json::parse(R"({"version": 1, "kind": "jobs", "name": "small", "fidelity": "steps", "start_up_s": 0,
    "objective": "samples_per_s", "cards": [{"total": "8GiB", "context": "512MiB"}],
    "jobs": [{"name": "job", "need": "3GiB", "batch": 2, "steps": 100,
      "model": {"kind": "linear", "fixed": "1GiB", "per_sample": "512MiB", "resident": "512MiB",
                "parameters": {"batch": [1, 64]}, "step_time": {"floor_ms": 100}},
      "tuner": {"use": "fixed"}}],
    "policies": [{"use": "job-queue", "profile": "best-effort", "safety_margin_mb": 0, "label": "together"},
                 {"use": "job-queue", "profile": "exclusive", "label": "alone"}]})");
  json["jobs"][0]["count"] = jobs;
  json["jobs"][0]["batch"] = low;
  json["jobs"][0]["tuner"]["bounds"]["batch"] = {low, high};
  return json;
}

ScenarioDocument small_document(const Json& json) { return parse_document(json.dump(), "small.json"); }
JobsScenario read_small(const Json& json) { return read_jobs(small_document(json)); }

// 100 steps of 13 samples in 10 s.
TEST(QueueOracle, OfOneJobIsTheLargestBatchThatFits) {
  auto experiment = read_experiment(small_document(small_queue(1, 2, 40)));
  experiment->run({});
  const Json rows = experiment->json()["policies"];
  ASSERT_EQ(rows.size(), 3);
  const Json& oracle = rows[2];
  EXPECT_EQ(oracle["label"], "oracle");
  EXPECT_EQ(oracle["oracle"]["jobs"].dump(), R"([{"name":"job","point":{"batch":13}}])");
  EXPECT_EQ(oracle["oracle"]["exhaustive"], true);
  EXPECT_EQ(oracle["oracle"]["runs"], 2 * 39);
  EXPECT_EQ(oracle["metrics"]["samples"], 1300);
  EXPECT_EQ(oracle["metrics"]["failed_steps"], 0);
  EXPECT_EQ(oracle["metrics"]["regret"], 0);
  EXPECT_NEAR(rows[0]["metrics"]["regret"].get<double>(), 1 - 2.0 / 13, 1e-4);  // the driver's calls
  EXPECT_FALSE(oracle.contains("finished"));
  EXPECT_EQ(experiment->json()["best"], "together");
  EXPECT_THAT(experiment->endings(),
              testing::Contains(HasSubstr("oracle is together with job: batch 13, the best of all 78")));
}

// One after the other, each at 13, is 2,600 samples in the 20 s in which two at once do 1,000. By need the
// second waits as well, because the first holds more than it was promised; of equals the first policy stands.
TEST(QueueOracle, OfTwoJobsLetsEachHaveTheWholeCard) {
  const JobsScenario scenario = read_small(small_queue(2, 2, 40));
  const auto oracle = find_queue_oracle(scenario, 2);
  ASSERT_TRUE(oracle);
  EXPECT_FALSE(oracle->oracle->tried_all);  // 2 · 39 · 39 choices
  EXPECT_LT(oracle->oracle->runs, 500);
  EXPECT_EQ(oracle->oracle->fixed["policy"], "together");
  EXPECT_EQ(find_metric(oracle->metrics, "samples"), 2600);
  EXPECT_NEAR(*find_metric(oracle->metrics, "makespan_s"), 20, 0.01);
  EXPECT_THAT(oracle_line(*oracle->oracle), HasSubstr("a search, not all there are"));
}

TEST(QueueOracle, IsWhatBruteForceFinds) {
  const JobsScenario scenario = read_small(small_queue(2, 3, 10));
  const auto oracle = find_queue_oracle(scenario, 3);
  ASSERT_TRUE(oracle);
  EXPECT_TRUE(oracle->oracle->tried_all);
  double most = 0;
  for (std::int64_t first = 3; first <= 10; ++first) {
    for (std::int64_t second = 3; second <= 10; ++second) {
      JobsScenario fixed = scenario;
      fixed.setup.jobs[0].phases.front().point = {first};
      fixed.setup.jobs[1].phases.front().point = {second};
      for (std::size_t job = 0; job < 2; ++job) {
        Parameter& batch = fixed.setup.jobs[job].tuner->bounds.parameters.front();
        batch.low = batch.high = job == 0 ? first : second;
      }
      for (const JobsResult& result : compare_queues(fixed)) {
        const Figures figures{result.metrics};
        if (figures["failed_steps"] + figures["oom_kills"] == 0)
          most = std::max(most, figures["samples_per_s"]);
      }
    }
  }
  EXPECT_EQ(find_metric(oracle->metrics, "samples_per_s"), most);
}

TEST(QueueOracle, ThreadsChangeNothing) {
  const JobsScenario scenario = read_small(small_queue(3, 2, 30));
  const auto one = find_queue_oracle(scenario, 1);
  const auto four = find_queue_oracle(scenario, 4);
  ASSERT_TRUE(one && four);
  EXPECT_EQ(oracle_json(*one->oracle).dump(), oracle_json(*four->oracle).dump());
  EXPECT_EQ(figures_json(one->metrics).dump(), figures_json(four->metrics).dump());
}

// Where time alone counts no batch is better than another: the first one tried stands, at the usual rank.
TEST(QueueOracle, RanksByCompletionWhereThatIsTheObjective) {
  Json json = small_queue(2, 2, 9);
  json["objective"] = "completion";
  JobsScenario scenario = read_small(json);
  auto results = compare_queues(scenario);
  const auto oracle = find_queue_oracle(scenario, 1);
  ASSERT_TRUE(oracle);
  EXPECT_EQ(oracle->oracle->fixed["policy"], "alone");  // done after 10 and 20 s, and not both after 20 s
  EXPECT_NEAR(*find_metric(oracle->metrics, "mean_completion_s"), 15, 0.01);
  results.push_back(*oracle);
  add_regrets(scenario, results.back(), results);
  EXPECT_NEAR(*find_metric(results[0].metrics, "regret"), 20.0 / 15 - 1, 1e-4);
}

// Six samples of 1 GiB on a card of 8 GiB. Steps take 50 ms, however many samples they have: where batches
// have one anyway no limit betters it, and six at once are best without one.
TEST(QueueOracle, LimitsTheBatchesOfComposers) {
  Json json =
      Json::parse(R"({"version": 1, "kind": "jobs", "name": "composed", "fidelity": "steps", "start_up_s": 0,
    "objective": "completion", "cards": [{"total": "8GiB", "context": "512MiB"}],
    "jobs": [{"name": "epoch", "need": "8GiB", "duration_s": 1,
      "composer": {"use": "planned-batches", "profile": "fixed", "batch_size": 1},
      "epoch": {"sizes": {"per_token": "10MiB", "floor_ms": 50},
                "data": {"samples": 6, "tasks": [{"name": "T1", "shortest": 100, "longest": 100}]}}}],
    "policies": [{"use": "job-queue", "profile": "exclusive", "label": "alone"}]})");
  const auto oracle = find_queue_oracle(read_small(json), 1);
  ASSERT_TRUE(oracle);
  EXPECT_EQ(oracle->oracle->runs, 4);  // at most 1, 2, 4, and as it composes
  EXPECT_EQ(oracle->oracle->fixed["jobs"].dump(), R"([{"name":"epoch","point":{"most_samples":1}}])");
  json["jobs"][0]["composer"]["batch_size"] = 6;
  const auto larger = find_queue_oracle(read_small(json), 1);
  ASSERT_TRUE(larger);
  EXPECT_EQ(larger->oracle->fixed["jobs"][0]["point"]["most_samples"], nullptr);  // one batch of six
}

TEST(QueueOracle, WithoutAnObjectiveThereIsNone) {
  Json json = small_queue(1, 2, 40);
  json.erase("objective");
  auto experiment = read_experiment(small_document(json));
  experiment->run({});
  EXPECT_EQ(experiment->json()["policies"].size(), 2);
  EXPECT_FALSE(experiment->json()["policies"][0]["metrics"].contains("regret"));
  Json flat = Json::parse(R"({"version": 1, "kind": "jobs", "name": "flat", "objective": "completion",
    "cards": [{"total": "8GiB"}], "policies": [{"use": "job-queue", "label": "oracle"}],
    "jobs": [{"need": "3GiB", "duration_s": 10}]})");
  try {
    read_small(flat);
    ADD_FAILURE() << "an objective without such a job was taken";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/objective"));
    EXPECT_THAT(error.what(), HasSubstr("/policies/0/label"));
  }
}

}  // namespace
}  // namespace vramlab
