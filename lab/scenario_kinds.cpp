#include "lab/scenario_kinds.hpp"

#include <algorithm>

#include "lab/comparison.hpp"
#include "lab/jobs_scenario.hpp"

namespace vramlab {
namespace {

double found_value(const Expectation& expectation, const PolicyResult& result, const ParameterSpace& space) {
  if (expectation.subject == Expectation::Subject::final_value) {
    return static_cast<double>(result.run.final_point[*space.find(expectation.name)]);
  }
  return find_metric(result.metrics, expectation.name).value_or(std::nan(""));
}

class TrainingFigures : public RunFigures {
 public:
  TrainingFigures(std::shared_ptr<const Scenario> scenario, Comparison comparison)
      : scenario_(std::move(scenario)), comparison_(std::move(comparison)) {}

  [[nodiscard]] double value(const Expectation& expectation, const std::string& label) const override {
    const PolicyResult* result = comparison_.find(label);
    // Without a safe fixed choice there is no oracle, and whatever is expected of it does not hold.
    return result != nullptr ? found_value(expectation, *result, scenario_->setup.bounds) : std::nan("");
  }

 private:
  std::shared_ptr<const Scenario> scenario_;
  Comparison comparison_;
};

ReadyScenario ready_training(const ScenarioText& text) {
  auto scenario = std::make_shared<const Scenario>(parse_scenario(text.text, text.file));
  return {scenario->expectations,
          [scenario] { return std::make_unique<TrainingFigures>(scenario, compare_policies(*scenario)); }};
}

ReadyScenario ready_jobs(const ScenarioText& text) {
  auto scenario = std::make_shared<const JobsScenario>(parse_jobs_scenario(text.text, text.file));
  return {scenario->expectations,
          [scenario] { return std::make_unique<LabelledMetrics<JobsResult>>(compare_queues(*scenario)); }};
}

template <class Results>
std::vector<LabelledFigures> figures_of(const Results& results) {
  std::vector<LabelledFigures> figures;
  for (const auto& result : results) figures.push_back({result.label, result.metrics});
  return figures;
}

FiguresRun training_figures(const ScenarioText& text, const std::vector<std::string>& labels) {
  const auto scenario = std::make_shared<const Scenario>(parse_scenario(text.text, text.file));
  require_labels(*scenario, labels);
  return [scenario, labels] { return figures_of(compare_policies(*scenario, labels).policies); };
}

FiguresRun jobs_figures(const ScenarioText& text, const std::vector<std::string>& labels) {
  const auto scenario = std::make_shared<const JobsScenario>(parse_jobs_scenario(text.text, text.file));
  return [scenario, labels] { return figures_of(compare_queues(*scenario, labels)); };
}

}  // namespace

const std::vector<ScenarioKind>& scenario_kinds() {
  static const std::vector<ScenarioKind> kinds{
      {"training", training_schema, ready_training, training_figures},
      {"jobs", jobs_schema, ready_jobs, jobs_figures},
  };
  return kinds;
}

void require_known_kind(const ScenarioText& text) {
  std::vector<std::string> names;
  for (const ScenarioKind& kind : scenario_kinds()) names.push_back(kind.name);
  if (text.kind.empty() || std::find(names.begin(), names.end(), text.kind) != names.end()) return;
  throw InputError(text.file + ": /kind",
                   "\"" + text.kind + "\" is not known here." + suggest_name(text.kind, names));
}

ReadyScenario ready_scenario(const ScenarioText& text) {
  require_known_kind(text);
  for (const ScenarioKind& kind : scenario_kinds()) {
    if (kind.name == text.kind) return kind.ready(text);
  }
  return ready_training(text);  // says what is missing
}

FiguresRun ready_figures(const ScenarioText& text, const std::vector<std::string>& labels) {
  require_known_kind(text);
  for (const ScenarioKind& kind : scenario_kinds()) {
    if (kind.name != text.kind) continue;
    if (kind.figures != nullptr) return kind.figures(text, labels);
    throw InputError(text.file + ": /sweep", "scenarios of kind " + kind.name + " have no sweep.");
  }
  return training_figures(text, labels);  // says what is missing
}

std::vector<CheckedExpectation> check_scenario(const ReadyScenario& scenario) {
  const std::unique_ptr<RunFigures> runs = scenario.run();
  std::vector<CheckedExpectation> checked;
  for (const Expectation& expectation : scenario.expectations) {
    checked.push_back(check_value(expectation, runs->value(expectation, expectation.policy)));
  }
  return checked;
}

}  // namespace vramlab
