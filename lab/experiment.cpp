#include "lab/experiment.hpp"

#include <algorithm>
#include <set>

#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/kinds/snapshot/spec.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/scenario/schema.hpp"

namespace vramlab {
namespace {

const double kNone = std::nan("");

double found_value(const Expectation& expectation, const PolicyResult& result, const ParameterSpace& space) {
  using Subject = Expectation::Subject;
  const auto place = static_cast<std::size_t>(expectation.number - 1);
  const TrainingRun& run = result.run;
  switch (expectation.subject) {
    case Subject::metric:
      return find_metric(result.metrics, expectation.name).value_or(kNone);
    case Subject::final_value:
      return static_cast<double>(run.final_point[*space.find(expectation.name)]);
    case Subject::adjustment: {
      if (place >= run.adjustments.size()) return kNone;
      const Adjustment& change = run.adjustments[place];
      const auto value =
          expectation.name.empty() ? change.iteration : change.to[*space.find(expectation.name)];
      return static_cast<double>(value);
    }
    case Subject::oom: {
      std::int64_t left = expectation.number;
      for (const IterationRecord& record : run.iterations) {
        if (record.result == StepResult::oom && --left == 0) return static_cast<double>(record.iteration);
      }
      return kNone;
    }
  }
  return kNone;
}

// The policies that expectations are about: others need not run. None = all of them.
std::vector<std::string> expected_labels(const std::vector<Expectation>& expectations) {
  std::set<std::string> labels;
  for (const Expectation& one : expectations) {
    labels.insert(one.policy);
    if (!one.relative_to.empty()) labels.insert(one.relative_to);
  }
  return {labels.begin(), labels.end()};
}

// The oracle of a training scenario is found, not run.
std::vector<std::string> expected_tuners(const std::vector<Expectation>& expectations) {
  std::vector<std::string> labels = expected_labels(expectations);
  std::erase(labels, "oracle");
  return labels;
}

class TrainingFigures : public RunFigures {
 public:
  TrainingFigures(std::shared_ptr<const TrainingScenario> scenario, Comparison comparison)
      : scenario_(std::move(scenario)), comparison_(std::move(comparison)) {}

  [[nodiscard]] double value(const Expectation& expectation, const std::string& label) const override {
    const PolicyResult* result = comparison_.find(label);
    // Without a safe fixed choice there is no oracle, and whatever is expected of it does not hold.
    return result != nullptr ? found_value(expectation, *result, scenario_->setup.bounds) : kNone;
  }

  [[nodiscard]] std::vector<std::string> around(const Expectation& expectation) const override {
    const PolicyResult* result = comparison_.find(expectation.policy);
    if (result == nullptr) return {"  no fixed choice is safe"};
    return iterations_around(expectation, *scenario_, result->run);
  }

 private:
  std::shared_ptr<const TrainingScenario> scenario_;
  Comparison comparison_;
};

class JobsFigures : public LabelledMetrics<JobsResult> {
 public:
  explicit JobsFigures(std::shared_ptr<const JobsScenario> scenario)
      : LabelledMetrics(compare_queues(*scenario, expected_labels(scenario->expectations))),
        scenario_(std::move(scenario)) {}

  [[nodiscard]] std::vector<std::string> around(const Expectation& expectation) const override {
    return jobs_to_look_at(scenario_->setup, find(expectation.policy)->run);
  }

 private:
  std::shared_ptr<const JobsScenario> scenario_;
};

ReadyScenario ready_training(const ScenarioDocument& document) {
  auto scenario = std::make_shared<const TrainingScenario>(read_training(document));
  return {scenario->expectations, [scenario] {
            return std::make_unique<TrainingFigures>(
                scenario, compare_policies(*scenario, expected_tuners(scenario->expectations)));
          }};
}

ReadyScenario ready_jobs(const ScenarioDocument& document) {
  auto scenario = std::make_shared<const JobsScenario>(read_jobs(document));
  return {scenario->expectations, [scenario] { return std::make_unique<JobsFigures>(scenario); }};
}

double figure(const Expectation& expectation, const RunFigures& runs) {
  const double value = runs.value(expectation, expectation.policy);
  if (expectation.relative_to.empty()) return value;
  return ratio(value, runs.value(expectation, expectation.relative_to));
}

ReadyScenario ready_search(const ScenarioDocument& document) {
  auto scenario = std::make_shared<const SearchScenario>(read_search(document));
  return {scenario->expectations, [scenario] {
            return std::make_unique<LabelledMetrics<SearchResult>>(
                compare_searchers(*scenario, expected_labels(scenario->expectations)));
          }};
}

ReadyScenario ready_epoch(const ScenarioDocument& document) {
  auto scenario = std::make_shared<const EpochScenario>(read_epoch(document));
  return {scenario->expectations, [scenario] {
            return std::make_unique<LabelledMetrics<EpochResult>>(
                compare_composers(*scenario, expected_labels(scenario->expectations)));
          }};
}

template <class Results>
std::vector<LabelledFigures> figures_of(const Results& results) {
  std::vector<LabelledFigures> figures;
  for (const auto& result : results) figures.push_back({result.label, result.metrics});
  return figures;
}

FiguresRun training_figures(const ScenarioDocument& document, const std::vector<std::string>& labels) {
  const auto scenario = std::make_shared<const TrainingScenario>(read_training(document));
  require_labels(*scenario, labels);
  return [scenario, labels] { return figures_of(compare_policies(*scenario, labels).policies); };
}

FiguresRun jobs_figures(const ScenarioDocument& document, const std::vector<std::string>& labels) {
  const auto scenario = std::make_shared<const JobsScenario>(read_jobs(document));
  return [scenario, labels] { return figures_of(compare_queues(*scenario, labels)); };
}

FiguresRun epoch_figures(const ScenarioDocument& document, const std::vector<std::string>& labels) {
  const auto scenario = std::make_shared<const EpochScenario>(read_epoch(document));
  require_labels(*scenario, labels);
  return [scenario, labels] { return figures_of(compare_composers(*scenario, labels)); };
}

FiguresRun search_figures(const ScenarioDocument& document, const std::vector<std::string>& labels) {
  const auto scenario = std::make_shared<const SearchScenario>(read_search(document));
  return [scenario, labels] { return figures_of(compare_searchers(*scenario, labels)); };
}

}  // namespace

const std::vector<ScenarioKind>& scenario_kinds() {
  static const std::vector<ScenarioKind> kinds{
      {"training", training_table, training_schema, ready_training, training_figures},
      {"jobs", jobs_table, jobs_schema, ready_jobs, jobs_figures},
      {"epoch", epoch_table, epoch_schema, ready_epoch, epoch_figures},
      {"search", search_table, search_schema, ready_search, search_figures},
      {"snapshot", snapshot_table, snapshot_schema, ready_snapshot},
  };
  return kinds;
}

void require_known_kind(const ScenarioDocument& document) {
  std::vector<std::string> names;
  for (const ScenarioKind& kind : scenario_kinds()) names.push_back(kind.name);
  if (document.kind.empty() || std::find(names.begin(), names.end(), document.kind) != names.end()) return;
  throw InputError(document.file + ": /kind",
                   "\"" + document.kind + "\" is not known here." + suggest_name(document.kind, names));
}

ReadyScenario ready_scenario(const ScenarioDocument& document) {
  require_known_kind(document);
  const auto kind = std::find_if(scenario_kinds().begin(), scenario_kinds().end(),
                                 [&](const ScenarioKind& one) { return one.name == document.kind; });
  if (kind == scenario_kinds().end()) return ready_training(document);  // says what is missing
  ReadyScenario scenario = kind->ready(document);
  const auto seeds = document.json.value("seeds", std::uint64_t{1});
  for (std::uint64_t i = 1; i < seeds; ++i) {
    scenario.more_seeds.push_back(kind->ready(at_seed(document, i)).run);
  }
  return scenario;
}

void require_sweep(const ScenarioDocument& document) {
  require_known_kind(document);
  for (const ScenarioKind& kind : scenario_kinds()) {
    if (kind.name != document.kind || kind.figures != nullptr) continue;
    throw InputError(document.file + ": /sweep", "scenarios of kind " + kind.name + " have no sweep.");
  }
}

FiguresRun ready_figures(const ScenarioDocument& document, const std::vector<std::string>& labels) {
  require_sweep(document);
  for (const ScenarioKind& kind : scenario_kinds()) {
    if (kind.name == document.kind) return kind.figures(document, labels);
  }
  return training_figures(document, labels);  // says what is missing
}

std::vector<CheckedExpectation> check_scenario(const ReadyScenario& scenario) {
  std::vector<std::unique_ptr<RunFigures>> runs;
  runs.push_back(scenario.run());
  for (const auto& run : scenario.more_seeds) runs.push_back(run());
  std::vector<CheckedExpectation> checked;
  for (const Expectation& expectation : scenario.expectations) {
    std::vector<double> values;
    for (const auto& one : runs) values.push_back(figure(expectation, *one));
    checked.push_back(check_values(expectation, values));
    if (checked.back().ok) continue;
    const auto bad = std::find_if(values.begin(), values.end(),
                                  [&](double value) { return !check_value(expectation, value).ok; });
    checked.back().around = runs[static_cast<std::size_t>(bad - values.begin())]->around(expectation);
  }
  return checked;
}

}  // namespace vramlab
