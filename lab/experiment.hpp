// An experiment: a scenario of any kind, read, run and looked at. Whoever compares, checks, sweeps or
// documents scenarios does so through this interface, whatever their kind; a kind is a folder of lab/kinds
// and its place in the list of kinds (experiment.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/best.hpp"
#include "lab/json.hpp"
#include "lab/metric.hpp"
#include "lab/scenario/expectations.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/scenario.hpp"
#include "report/table.hpp"
#include "sim/runs/card_runner.hpp"
#include "sim/runs/job_process.hpp"

namespace vramlab {

/// What an experiment is asked besides its scenario.
struct Question {
  std::int64_t seeds = 1;          ///< above 1: take_seeds() will be called in place of run()
  std::string picture;             ///< file, .svg or .png; empty = none
  std::string trace_dir;           ///< folder for what happened in each run; empty = none
  bool report = false;             ///< sections() will be asked for
  bool all_rows = false;           ///< tables list everything, however long
  bool decisions = false;          ///< decisions() will be asked for
  unsigned threads = 1;            ///< that look for an oracle; the result does not depend on them
  MakePerformer make_performer{};  ///< makes what runs the steps; empty = pretended cards
  MakeJobCard make_job_card{};     ///< the same for jobs; given if and only if `make_performer` is
  std::size_t device_cards = 1;    ///< that these two have, where they are given
};

/// What a policy decided in a run, in its order, and what it was about: a line each, without times.
struct Decisions {
  std::string label;
  std::vector<std::string> lines;
};

/// What each of several seeds came to, as one: of every policy the mean of each figure over the seeds that
/// have it, and how far they lie apart, as the standard deviation of the sample (n - 1).
struct SeededFigures {
  std::vector<LabelledFigures> means;
  std::vector<LabelledFigures> spreads;
};
SeededFigures over_seeds(const std::vector<std::vector<LabelledFigures>>& runs);
struct Kind;

/// A scenario of one kind that was read. After `run` it can be asked for all that is behind it.
class Experiment {
 public:
  virtual ~Experiment() = default;

  [[nodiscard]] virtual const Scenario& scenario() const = 0;
  /// Of all that can be run, in the order of the file.
  [[nodiscard]] virtual std::vector<std::string> labels() const;
  /// What carries a label, for messages.
  [[nodiscard]] virtual std::string labelled() const { return "policy"; }

  /// Throws InputError that names every one of `labels` which is not there, each with the nearest that are.
  void require_labels(const std::vector<std::string>& labels) const;

  /// Runs those labelled so, all if there are none. Throws InputError for a label that is not there, and for
  /// what only a run shows, such as weights that do not fit.
  virtual void run(const std::vector<std::string>& labels) = 0;

  /// Before `run`: nobody asks for an oracle that takes many runs of its own.
  virtual void leave_out_oracle() {}
  /// Takes what this many seeds came to (SeededFigures) in place of a run. False for a kind that has no view
  /// of its own for it.
  virtual bool take_seeds(const SeededFigures& /*figures*/) { return false; }

  /// How its policies stand, and by which rule one is best. Of a kind that ranks nothing there are none.
  [[nodiscard]] virtual std::vector<Standing> standings() const { return {}; }
  [[nodiscard]] virtual BestRule best_rule() const { return {}; }

  /// What it came to, in one sentence.
  [[nodiscard]] virtual std::string verdict() const { return verdict_of(standings(), best_rule()); }
  /// What was run in one line, which rule makes one the best, and what had to be assumed in others.
  [[nodiscard]] virtual std::vector<std::string> head() const = 0;
  [[nodiscard]] virtual std::vector<Table> tables() const = 0;
  /// Runs that did not come to their end, a line each.
  [[nodiscard]] virtual std::vector<std::string> endings() const { return {}; }
  /// Writes the traces and the picture that the question asks for. Returns the files. Throws InputError if
  /// one cannot be written.
  virtual std::vector<std::string> write_files() { return {}; }
  /// The result; it names the files if they were written.
  [[nodiscard]] virtual Json json() const = 0;
  /// What the page of a report shows.
  [[nodiscard]] virtual std::vector<Json> sections() const = 0;

  /// What each policy decided. Of a kind without steps there are none.
  [[nodiscard]] virtual std::vector<Decisions> decisions() const { return {}; }
  /// The figures of every run.
  [[nodiscard]] virtual std::vector<LabelledFigures> figures() const = 0;
  /// The figure that `expectation` is about, of the run labelled `label`; NaN if there is none.
  [[nodiscard]] virtual double value(const Expectation& expectation, const std::string& label) const = 0;
  /// Why the run labelled `label` ended before its end; empty if it did not, or was not made.
  [[nodiscard]] virtual std::string ended_early(const std::string& /*label*/) const { return {}; }
  /// What that figure can be, whatever happens.
  [[nodiscard]] virtual ValueRange range(const Expectation& expectation) const;
  /// What the scenario declares and no run came to: a phase, a fault, a process. What a run that ended early
  /// would still have come to is not among it.
  [[nodiscard]] virtual std::vector<Unmet> unmet() const { return {}; }
  /// For an expectation that does not hold: what happened around it, a few lines for people.
  [[nodiscard]] virtual std::vector<std::string> around(const Expectation& /*expectation*/) const {
    return {};
  }

 private:
  friend std::unique_ptr<Experiment> read_experiment(const ScenarioDocument& document,
                                                     const Question& question);
  const Kind* kind_ = nullptr;  ///< that it was read as
};

/// One kind of scenario.
struct Kind {
  std::string name;                        ///< "training", as "kind" says it
  const RecordBase& (*table)();            ///< the keys of its files
  Json (*schema)(const PolicySet& known);  ///< JSON schema (draft 7) of them
  const MetricTable& (*metrics)();         ///< of its results
  /// Throws InputError with every problem of the file, and for a question that goes with no such scenario.
  std::unique_ptr<Experiment> (*read)(const ScenarioDocument& document, const Question& question);
  std::string sweep_metric{};  ///< what a sweep shows first; empty = this kind has no sweeps
  bool has_picture = false;    ///< Question::picture
  bool has_traces = false;     ///< Question::trace_dir
  bool has_steps = false;      ///< Question::make_performer, and decisions
};

/// Throws InputError where `question` asks for a machine that has fewer cards than the `cards` of a scenario,
/// which its key `key` gives.
void require_cards(const Question& question, const Scenario& scenario, std::size_t cards,
                   const std::string& key);

/// All kinds, in the order of the documents.
const std::vector<Kind>& kinds();

/// The kind of a file; that of one which names none is training, whose reader says what is missing. Throws
/// InputError, with the nearest right ones, for a kind that there is not.
const Kind& kind_of(const ScenarioDocument& document);

/// The kind called `name`; training where it is empty. Throws InternalError if there is none.
const Kind& find_kind(std::string_view name);

/// Reads a scenario by its kind. Throws InputError with every problem of the file, and for a question that
/// this kind has no answer to.
std::unique_ptr<Experiment> read_experiment(const ScenarioDocument& document, const Question& question = {});

/// A scenario of any kind, once for each of its "seeds".
using SeededExperiments = std::vector<std::unique_ptr<Experiment>>;
SeededExperiments read_seeds(const ScenarioDocument& document);

/// Runs them, as far as expectations ask for it, and holds the runs against every expectation, in the order
/// of the file. One that no value could break fails. A run that ended early bears nothing out: for each
/// policy that something is expected of and whose run did, one that does not hold is added, unless the file
/// expects its `finished` to be 0. Another is added for everything that the scenario declares and no run came
/// to.
std::vector<CheckedExpectation> check_expectations(const SeededExperiments& seeds);

/// `folder`, made if missing. Throws InputError if it cannot be.
std::filesystem::path made_folder(std::filesystem::path folder);

/// For each label the path in `folder` (made if missing) that its files begin with; no two are equal. Throws
/// InputError as made_folder does.
std::map<std::string, std::string> file_bases(const std::vector<std::string>& labels,
                                              const std::string& folder);

/// Whether `label` is among `labels`, or there are none: all are run then.
inline bool is_wanted(const std::vector<std::string>& labels, const std::string& label) {
  return labels.empty() || std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// Throws InputError as Experiment::require_labels does, for the policies of a scenario.
void require_labels(const Scenario& scenario, const std::vector<std::string>& labels);

/// What `run(entry)` makes of each policy of the scenario that is labelled so, of all if there are no labels.
/// Throws InputError as require_labels does.
template <class Run>
auto run_policies(const Scenario& scenario, const std::vector<std::string>& labels, const Run& run) {
  require_labels(scenario, labels);
  std::vector<decltype(run(scenario.policies.front()))> results;
  for (const PolicyEntry& entry : scenario.policies) {
    if (is_wanted(labels, entry.label)) results.push_back(run(entry));
  }
  return results;
}

/// The names of a policy whose figures are not known yet.
inline PolicyFigures named_after(const PolicyEntry& entry) {
  return {{entry.label, {}}, entry.choice.use, entry.choice.profile};
}

/// The labels of all that have one.
template <class Labelled>
std::vector<std::string> all_labels(const Labelled& all) {
  std::vector<std::string> labels;
  for (const auto& one : all) labels.push_back(one.label);
  return labels;
}

/// The columns of a table of figures, behind a first one of words.
std::vector<Table::Column> figure_columns(const std::string& first, const std::vector<std::string>& figures);

/// What experiments of all kinds have in common. `Results` is a range of LabelledFigures.
template <class AnyScenario, class Results>
class ScenarioExperiment : public Experiment {
 public:
  explicit ScenarioExperiment(AnyScenario scenario, Question question = {})
      : scenario_(std::move(scenario)), question_(std::move(question)) {}

  [[nodiscard]] const Scenario& scenario() const override { return scenario_; }
  /// The first line of head().
  [[nodiscard]] virtual std::string head_line() const = 0;
  [[nodiscard]] std::vector<std::string> head() const override {
    std::vector<std::string> lines{head_line()};
    if (const std::string rule = best_rule().head; !rule.empty()) lines.push_back(rule);
    if constexpr (requires { scenario_.notes; }) {
      lines.insert(lines.end(), scenario_.notes.begin(), scenario_.notes.end());
    }
    return lines;
  }
  [[nodiscard]] std::vector<LabelledFigures> figures() const override {
    return {results_.begin(), results_.end()};
  }
  [[nodiscard]] double value(const Expectation& expectation, const std::string& label) const override {
    const auto* result = find(label);
    return result == nullptr ? std::nan("") : Figures{result->metrics}[expectation.name];
  }
  [[nodiscard]] std::string ended_early(const std::string& label) const override {
    const auto* result = find(label);
    if constexpr (requires { result->run.ended_early; }) {
      if (result != nullptr) return result->run.ended_early;
    }
    return {};
  }
  [[nodiscard]] std::vector<std::string> endings() const override {
    std::vector<std::string> lines;
    for (const auto& result : results_) {
      if (const std::string why = ended_early(result.label); !why.empty())
        lines.push_back(result.label + " ended early: " + why + ".");
    }
    return lines;
  }

 protected:
  /// `json` with how its "policies" stand.
  [[nodiscard]] Json judged(Json json) const {
    put_standings(json, "policies", standings(), best_rule());
    return json;
  }
  /// The section of a page with how json[rows] stand, and their stars.
  [[nodiscard]] Json starred(Json section, const std::string& rows = "policies") const {
    put_standings(section, rows, standings(), best_rule());
    put_stars(section, rows, figures(), find_kind(section["kind"].get<std::string>()).metrics());
    return section;
  }

  /// The result with that label; null if there is none.
  [[nodiscard]] const auto* find(const std::string& label) const {
    const auto found = std::ranges::find(results_, label, &LabelledFigures::label);
    return found == results_.end() ? nullptr : &*found;
  }

  AnyScenario scenario_;
  Question question_;
  Results results_;
};

}  // namespace vramlab
