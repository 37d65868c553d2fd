#include "lab/metric.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <gmock/gmock.h>

#include "lab/experiment.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/kinds/snapshot/spec.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/whatif/view.hpp"
#include "models/linear.hpp"

namespace vramlab {
namespace {

std::vector<std::string> names_in(const std::vector<Metric>& metrics) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics) names.push_back(metric.name);
  return names;
}

double figure(const std::vector<Metric>& metrics, const std::string& name) {
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  return found == metrics.end() ? std::nan("") : found->value;
}

// Two jobs of 98 s that start up in 2 s: one alone in 100 s, one in 200 s after 100 s of waiting, which held
// more than it was promised. One was refused, and one that came at 50 s waits to the end at 250 s. 5,000
// GiB·s of 100 GiB.
TEST(JobMetrics, AreTheirFormulasWorkedByHand) {
  JobQueueSetup setup;
  setup.start_up = std::chrono::seconds{2};
  setup.jobs.resize(4);
  for (JobSpec& job : setup.jobs) job.phases = {{.duration = std::chrono::seconds{98}}};
  setup.jobs[2].arrival = std::chrono::seconds{10};
  setup.jobs[3].arrival = std::chrono::seconds{50};
  JobQueueRun run;
  run.end = std::chrono::seconds{250};
  run.capacity = 100_GiB;
  run.byte_seconds = 5000.0 * static_cast<double>(1_GiB);
  run.jobs.resize(4);
  run.jobs[0] = {.outcome = JobOutcome::completed, .end = std::chrono::seconds{100}};
  run.jobs[1] = {.outcome = JobOutcome::completed,
                 .end = std::chrono::seconds{200},
                 .waited = std::chrono::seconds{100},
                 .overran = true};
  run.jobs[2].outcome = JobOutcome::refused;
  const std::vector<Metric> metrics = jobs_metrics(setup, run);
  const std::vector<Metric> expected{
      {"completed", 2},        {"finished", 0},     {"makespan_s", 250},         {"mean_wait_s", 100},
      {"p50_wait_s", 100},     {"p99_wait_s", 200}, {"mean_completion_s", 150},  {"p99_completion_s", 200},
      {"mean_slow_down", 1.5}, {"refused", 1},      {"memory_utilisation", 0.2}, {"fairness", 0.45},
      {"overruns", 1}};
  for (const Metric& one : expected) EXPECT_DOUBLE_EQ(figure(metrics, one.name), one.value) << one.name;
}

// Four steps of eight that were planned, in 10 s: 8 samples that a restart lost, 8 and 4 that were trained
// on, and a failure of 2 s, after which the policy moved. It gave a reason before that once, and once later.
TEST(TrainingMetrics, AreTheirFormulasWorkedByHand) {
  TrainingScenario scenario;
  scenario.model =
      std::make_shared<LinearWorkload>(LinearSpec{.per_sample = 12_MiB, .time = {.floor_seconds = 1}});
  scenario.setup.bounds = scenario.model->parameters();
  scenario.setup.iterations = 8;
  scenario.objective = Objective::samples_per_s;
  TrainingRun run;
  run.duration = std::chrono::seconds{10};
  const auto at = [](std::int64_t batch, const char* reason = "") {
    return std::make_shared<const StepChoice>(StepChoice{.point = {batch}, .reason = reason});
  };
  run.iterations = {{.iteration = 1, .kept = false, .choice = at(8, "looked")},
                    {.iteration = 2, .choice = at(8)},
                    {.iteration = 3,
                     .duration = std::chrono::seconds{2},
                     .result = StepResult::oom,
                     .choice = at(16, "ran out of memory")},
                    {.iteration = 4, .choice = at(4, "all is well")}};
  run.adjustments.push_back({.iteration = 3, .from = {16}, .to = {4}});
  const auto value = [&](const std::string& name) { return figure(training_metrics(scenario, run), name); };
  EXPECT_DOUBLE_EQ(value("samples_per_s"), 1.2);  // (8 + 4) / 10
  EXPECT_DOUBLE_EQ(value("oom_time_share"), 0.2);
  EXPECT_DOUBLE_EQ(value("evaluations_to_settle"), 2);
  EXPECT_DOUBLE_EQ(value("ooms"), 1);
  EXPECT_DOUBLE_EQ(value("objective"), 0.6);  // half of what was planned was begun
  run.duration = std::chrono::seconds{0};
  EXPECT_DOUBLE_EQ(value("samples_per_s"), 0);
  EXPECT_DOUBLE_EQ(value("oom_time_share"), 0);
}

// Two epochs of four samples, three of one task: 6 of 8 were trained on, with equal weight on both tasks.
TEST(EpochMetrics, AreTheirFormulasWorkedByHand) {
  EpochSetup setup;
  setup.tasks = {"T1", "T2"};
  setup.samples.resize(4);
  setup.samples[3].task = 1;
  setup.epochs = 2;
  EpochRun run;
  run.totals.samples = 6;
  run.gradient_shares = {0.5, 0.5};
  const auto value = [&](const std::string& name, std::int64_t misfits) {
    return figure(epoch_metrics(setup, run, misfits), name);
  };
  EXPECT_DOUBLE_EQ(value("untrained_samples", 1), 2);
  EXPECT_DOUBLE_EQ(value("task_share", 1), 0.25);  // 1/2 for 3/4 of the data
  EXPECT_DOUBLE_EQ(value("finished", 1), 1);       // one that fits nowhere is left out in each epoch
  EXPECT_DOUBLE_EQ(value("finished", 0), 0);
  run.ended_early = "ten batches in a row ran out of memory";
  EXPECT_DOUBLE_EQ(value("finished", 1), 0);
}

TEST(SearchMetrics, AreTheirFormulasWorkedByHand) {
  SearchResult result;
  result.buckets.resize(2);
  for (BucketResult& bucket : result.buckets) bucket.run.answer.action = SearcherAnswer::Action::found;
  const auto value = [&](const std::string& name) { return figure(search_metrics(result), name); };
  EXPECT_DOUBLE_EQ(value("finished"), 1);  // no epoch was asked for
  EXPECT_DOUBLE_EQ(value("epoch_survived"), 0);
  result.planned = result.epoch.iterations = 10;
  EXPECT_DOUBLE_EQ(value("epoch_survived"), 1);
  EXPECT_DOUBLE_EQ(value("finished"), 1);
  result.epoch.ooms = 1;
  EXPECT_DOUBLE_EQ(value("epoch_survived"), 0);
  EXPECT_DOUBLE_EQ(value("finished"), 0);
  result.buckets[0].run.answer.action = SearcherAnswer::Action::give_up;
  EXPECT_DOUBLE_EQ(value("found"), 0);  // every bucket counts
}

// A run without anything has every figure but those that compare it with another run, in the table's order.
TEST(MetricTable, ResultsHaveItsMetricsInItsOrder) {
  TrainingScenario scenario;
  scenario.model =
      std::make_shared<LinearWorkload>(LinearSpec{.per_sample = 12_MiB, .time = {.floor_seconds = 1}});
  std::vector<std::string> names = names_in(training_metrics(scenario, {}));
  names.insert(names.end(), {"disturbance_cost", "regret"});
  EXPECT_EQ(names_in(training_metrics(scenario, {}, {.undisturbed = 1, .oracle = 1})), names);
  names.emplace_back("on_front");  // of a comparison
  const std::vector<std::string> of_search{"search_probes", "search_ooms", "search_s"};
  names.insert(std::ranges::find(names, "objective"), of_search.begin(), of_search.end());
  EXPECT_EQ(names, names_of(training_metric_table()));
  const BatchSearchRun search_before;
  EXPECT_EQ(names_in(training_metrics(scenario, {}, {1, 1, true}, &search_before)), names);
  JobQueueSetup steered;
  steered.jobs.emplace_back().composer.emplace();
  const std::vector<Metric> best{{"samples", 1}, {"samples_per_s", 1}, {"mean_completion_s", 1}};
  std::vector<std::string> of_jobs = names_of(jobs_metric_table());
  EXPECT_EQ(names_in(jobs_metrics(steered, {}, {QueueObjective::completion, &best})), of_jobs);
  std::erase(of_jobs, "regret");
  std::erase(of_jobs, "pixels_per_s");
  EXPECT_EQ(names_in(jobs_metrics({}, {})), of_jobs);
  EpochSetup epoch;
  std::vector<std::string> of_epoch = names_of(epoch_metric_table());
  epoch.tuning.emplace();
  EpochRun tuned;
  tuned.final_point = {3};
  std::erase(of_epoch, "final_batch_size");  // it moves the budget
  EXPECT_EQ(names_in(epoch_metrics(epoch, tuned, 0, true, &best)), of_epoch);
  std::erase(of_epoch, "regret");
  EXPECT_EQ(names_in(epoch_metrics(epoch, tuned)), of_epoch);
  epoch.tuning.reset();
  std::erase(of_epoch, "final_budget_bytes");
  std::erase(of_epoch, "adjustments");
  EXPECT_EQ(names_in(epoch_metrics(epoch, {})), of_epoch);
  SearchResult search;
  search.buckets.resize(1);
  EXPECT_EQ(names_in(search_metrics(search)), names_of(search_metric_table()));
}

// Figures of a row of `whatif --json`, and behind them those that only a mark has.
TEST(MetricTable, HasEveryFigureOfASnapshotsRows) {
  const Json row = whatif_row_json({}, {});
  const Json mark = whatif_mark_json({});
  std::vector<std::string> names;
  for (const auto& [key, value] : row.items()) {
    if (value.is_number() || value.is_boolean() || key.starts_with("smallest_")) names.push_back(key);
  }
  EXPECT_EQ(snapshot_metric_names(), names);
  std::vector<std::string> at_mark;
  for (const auto& [key, value] : mark.items()) {
    if (!value.is_number()) continue;
    at_mark.push_back(key);
    if (std::find(names.begin(), names.end(), key) == names.end()) names.push_back(key);
  }
  EXPECT_THAT(snapshot_mark_metric_names(), testing::UnorderedElementsAreArray(at_mark));
  EXPECT_EQ(names_of(snapshot_metric_table()), names);
}

TEST(Figures, WhatIsNotThereIsNullInJson) {
  EXPECT_EQ(figures_json({{"a", 53}, {"b", 0.5}, {"c", std::nan("")}}).dump(),
            R"({"a":53,"b":0.5,"c":null})");
}

TEST(MetricTable, EveryMetricHasAUnitATitleAndAMeaning) {
  const std::set<std::string> units{"count", "share", "bytes", "s", "1/s", "h", "score"};
  for (const Kind& kind : kinds()) {
    for (const MetricDescription& metric : kind.metrics()) {
      EXPECT_TRUE(units.contains(metric.unit)) << metric.name;
      EXPECT_FALSE(metric.title.empty() || metric.about.empty()) << metric.name;
      EXPECT_FALSE(metric.about.ends_with('.')) << metric.name;
    }
  }
}

}  // namespace
}  // namespace vramlab
