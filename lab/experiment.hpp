// The kinds of scenarios. Whoever checks, lists or documents scenarios of any kind starts here; a further
// kind is a line of the table in experiment.cpp.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lab/json.hpp"
#include "lab/kinds/training/spec.hpp"
#include "lab/metric.hpp"
#include "lab/scenario/expectations.hpp"
#include "lab/scenario/fields.hpp"
#include "lab/scenario/file.hpp"

namespace vramlab {

/// What the runs of a scenario came to, as far as expectations ask for it.
class RunFigures {
 public:
  virtual ~RunFigures() = default;

  /// The figure that `expectation` is about, of the run labelled `label`; NaN if there is none.
  [[nodiscard]] virtual double value(const Expectation& expectation, const std::string& label) const = 0;

  /// For an expectation that does not hold: what happened around it, a few lines for people.
  [[nodiscard]] virtual std::vector<std::string> around(const Expectation& /*expectation*/) const {
    return {};
  }
};

/// A scenario of any kind, read and ready to run.
struct ReadyScenario {
  std::vector<Expectation> expectations;
  std::function<std::unique_ptr<RunFigures>()> run;  ///< may be called on any thread
  /// The same for the further seeds, where the file asks for several. Set by ready_scenario.
  std::vector<std::function<std::unique_ptr<RunFigures>()>> more_seeds{};
};

/// Runs the policies of a scenario; may be called on any thread.
using FiguresRun = std::function<std::vector<LabelledFigures>()>;

/// One kind of scenario.
struct ScenarioKind {
  std::string name;                                 ///< "training", as "kind" says it
  const RecordBase& (*table)();                     ///< the keys of its files
  Json (*schema)(const PolicySet& known);           ///< JSON schema (draft 7) of them
  ReadyScenario (*ready)(const ScenarioDocument&);  ///< throws InputError with every problem of the file
  /// The same for a sweep: the policies labelled so, all if there are none. Null: this kind has no sweeps.
  FiguresRun (*figures)(const ScenarioDocument&, const std::vector<std::string>& labels) = nullptr;
};

/// All kinds.
const std::vector<ScenarioKind>& scenario_kinds();

/// Throws InputError, with the nearest right ones, for a kind that there is not. One that is missing passes.
void require_known_kind(const ScenarioDocument& document);

/// Reads a scenario by its kind, once for each of its seeds. Throws InputError with every problem of the
/// file.
ReadyScenario ready_scenario(const ScenarioDocument& document);

/// Throws InputError for a kind that has no sweeps.
void require_sweep(const ScenarioDocument& document);

/// Reads a scenario for a sweep. Throws InputError also for a kind that has none.
FiguresRun ready_figures(const ScenarioDocument& document, const std::vector<std::string>& labels);

/// Runs the scenario and holds its runs against every expectation, in their order.
std::vector<CheckedExpectation> check_scenario(const ReadyScenario& scenario);

/// Figures of results that have a `label` and `metrics`.
template <class Result>
class LabelledMetrics : public RunFigures {
 public:
  explicit LabelledMetrics(std::vector<Result> results) : results_(std::move(results)) {}

  [[nodiscard]] double value(const Expectation& expectation, const std::string& label) const override {
    const Result* result = find(label);
    if (result == nullptr) return std::nan("");
    return find_metric(result->metrics, expectation.name).value_or(std::nan(""));
  }

 protected:
  [[nodiscard]] const Result* find(const std::string& label) const {
    for (const Result& result : results_) {
      if (result.label == label) return &result;
    }
    return nullptr;
  }

 private:
  std::vector<Result> results_;
};

}  // namespace vramlab
