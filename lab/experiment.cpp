#include "lab/experiment.hpp"

#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/statistics.hpp"

namespace vramlab {

namespace {

namespace fs = std::filesystem;

// The policies that expectations are about: others need not run. None = all of them.
std::vector<std::string> expected_labels(const Experiment& experiment) {
  const std::vector<std::string> known = experiment.labels();
  std::set<std::string> labels;
  const auto add = [&](const std::string& label) {  // the oracle of a training scenario is found, not run
    if (std::ranges::find(known, label) != known.end()) labels.insert(label);
  };
  for (const Expectation& one : experiment.scenario().expectations) {
    add(one.policy);
    add(one.relative_to);
  }
  return {labels.begin(), labels.end()};
}

bool is_about_oracle(const Expectation& expectation) {
  return expectation.policy == "oracle" || expectation.relative_to == "oracle" ||
         expectation.name == "regret";
}

double figure(const Expectation& expectation, const Experiment& run) {
  const double value = run.value(expectation, expectation.policy);
  if (expectation.relative_to.empty()) return value;
  return ratio(value, run.value(expectation, expectation.relative_to));
}

// Whether it says that the run ends early.
bool expects_early_end(const Expectation& one) {
  return one.subject == Expectation::Subject::metric && one.name == "finished" && one.relative_to.empty() &&
         !check_value(one, 1).ok;
}

// A failed one for each policy of an expectation whose run ended early, where the file does not say that it
// does.
std::vector<CheckedExpectation> early_ends(const SeededExperiments& seeds) {
  const auto& expectations = seeds.front()->scenario().expectations;
  std::set<std::string> policies;
  for (const Expectation& one : expectations) {
    policies.insert(one.policy);
    if (!one.relative_to.empty()) policies.insert(one.relative_to);
  }
  for (const Expectation& one : expectations) {
    if (expects_early_end(one)) policies.erase(one.policy);
  }
  std::vector<CheckedExpectation> early;
  for (const std::string& policy : policies) {
    const auto ended =
        std::ranges::find_if(seeds, [&](const auto& one) { return !one->ended_early(policy).empty(); });
    if (ended == seeds.end()) continue;
    early.push_back({.policy = policy, .metric = "finished", .value = 0, .bound = "= 1"});
    early.back().around = {"  ended early: " + (*ended)->ended_early(policy),
                           "  Where it should, expect its \"finished\" to equal 0."};
  }
  return early;
}

// Two passes: the squares of far numbers would lose what lies between them.
double spread_of(const std::vector<double>& values, double mean) {
  if (values.size() < 2) return std::nan("");
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// A failed one for everything that never came, with any seed.
std::vector<CheckedExpectation> never_came(const SeededExperiments& seeds) {
  std::vector<Unmet> unmet = seeds.front()->unmet();
  for (const auto& one : seeds) {
    const std::vector<Unmet> here = one->unmet();
    std::erase_if(unmet, [&](const Unmet& other) {
      return std::ranges::find(here, other.where, &Unmet::where) == here.end();
    });
  }
  std::vector<CheckedExpectation> never;
  for (const Unmet& one : unmet) {
    never.push_back({.policy = "scenario", .metric = one.where, .value = 0, .bound = "comes in the run"});
    never.back().around = {
        "  never comes: " + one.why,
        "  What is expected of the run says nothing about it. Let it come, or leave it out."};
  }
  return never;
}

// An expectation that could not fail is no test.
void fail_if_empty(const Expectation& expectation, const Experiment& run, CheckedExpectation& checked) {
  const ValueRange range = run.range(expectation);
  if (!checked.ok || !cannot_fail(expectation, range.low, range.high)) return;
  checked.ok = false;
  const std::string most = std::isinf(range.high) ? "" : " to " + format_number(range.high);
  checked.around = {fmt::format("  can never fail: {} is {}{} whatever happens", checked.metric,
                                format_number(range.low), most.empty() ? " or more" : most),
                    "  Expect what would not hold if something went wrong."};
}

/// What of a question only some kinds can answer, as users ask for it.
struct Ability {
  const char* option;
  bool (*is_asked)(const Question& question);
  bool Kind::*has;
};

constexpr std::array kAbilities{
    Ability{"--picture", [](const Question& question) { return !question.picture.empty(); },
            &Kind::has_picture},
    Ability{"--trace-dir", [](const Question& question) { return !question.trace_dir.empty(); },
            &Kind::has_traces},
    Ability{"--device cuda",
            [](const Question& question) { return static_cast<bool>(question.make_performer); },
            &Kind::has_steps},
};

// The error names the kinds that can.
void require_ability(const Ability& ability, const Kind& kind, const Question& question) {
  if (!ability.is_asked(question) || kind.*ability.has) return;
  std::vector<std::string> names;
  for (const Kind& one : kinds()) {
    if (one.*ability.has) names.push_back(one.name);
  }
  const std::string last = names.back();
  names.pop_back();
  throw InputError("", fmt::format("{} is for scenarios of kind {}{}{}.", ability.option,
                                   fmt::join(names, ", "), names.empty() ? "" : " and ", last));
}

// A file's name for a label, which may hold anything.
std::string file_name_of(const std::string& label) {
  std::string name;
  for (const char c : label.substr(0, 100)) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  return name;
}

// Every one of `labels` that is not `known` in `file` is a problem of its own.
void require_known(const std::string& file, const std::string& what, const std::vector<std::string>& known,
                   const std::vector<std::string>& labels) {
  std::vector<Problem> problems;
  for (const std::string& label : labels) {
    if (std::ranges::find(known, label) != known.end()) continue;
    problems.push_back({file, "no " + what + " is labelled \"" + label + "\"." + suggest_name(label, known)});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace

std::vector<std::string> Experiment::labels() const { return all_labels(scenario().policies); }

ValueRange Experiment::range(const Expectation& expectation) const {
  if (kind_ == nullptr || expectation.subject != Expectation::Subject::metric) return {};
  const MetricTable& table = kind_->metrics();
  const auto metric = std::ranges::find(table, expectation.name, &MetricDescription::name);
  return metric == table.end() ? ValueRange{} : metric->values();
}

void Experiment::require_labels(const std::vector<std::string>& labels) const {
  require_known(scenario().file, labelled(), this->labels(), labels);
}

void require_cards(const Question& question, const Scenario& scenario, std::size_t cards,
                   const std::string& key) {
  if (!question.make_performer || cards <= std::max<std::size_t>(1, question.device_cards)) return;
  throw InputError(scenario.file + ": " + key,
                   fmt::format("makes {} cards, and this machine has {} for --device cuda; leave that out to "
                               "simulate them.",
                               cards, question.device_cards));
}

const Kind& kind_of(const ScenarioDocument& document) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) {
    if (document.kind.empty() || kind.name == document.kind) return kind;
    names.push_back(kind.name);
  }
  throw InputError(document.file + ": /kind",
                   "\"" + document.kind + "\" is not known here." + suggest_name(document.kind, names));
}

const Kind& find_kind(std::string_view name) {
  for (const Kind& kind : kinds()) {
    if (name.empty() || kind.name == name) return kind;
  }
  throw InternalError("there is no kind " + std::string{name});
}

std::unique_ptr<Experiment> read_experiment(const ScenarioDocument& document, const Question& question) {
  const Kind& kind = kind_of(document);
  for (const Ability& ability : kAbilities) require_ability(ability, kind, question);
  auto experiment = kind.read(document, question);
  experiment->kind_ = &kind;
  return experiment;
}

SeededFigures over_seeds(const std::vector<std::vector<LabelledFigures>>& runs) {
  std::vector<std::string> labels;  // an oracle, or a regret, may be there with some seeds only
  std::map<std::string, std::vector<std::string>> names;
  std::map<std::pair<std::string, std::string>, std::vector<double>> values;
  for (const auto& run : runs) {
    for (const LabelledFigures& one : run) {
      if (std::ranges::find(labels, one.label) == labels.end()) labels.push_back(one.label);
      for (const Metric& metric : one.metrics) {
        const auto [place, is_new] = values.try_emplace({one.label, metric.name});
        if (is_new) names[one.label].push_back(metric.name);
        if (!std::isnan(metric.value)) place->second.push_back(metric.value);
      }
    }
  }
  SeededFigures all;
  for (const std::string& label : labels) {
    all.means.push_back({label, {}});
    all.spreads.push_back({label, {}});
    for (const std::string& name : names[label]) {
      const std::vector<double>& of_seeds = values[{label, name}];
      const double mean = mean_of(of_seeds);
      all.means.back().metrics.push_back({name, mean});
      all.spreads.back().metrics.push_back({name, spread_of(of_seeds, mean)});
    }
  }
  return all;
}

SeededExperiments read_seeds(const ScenarioDocument& document) {
  SeededExperiments seeds;
  seeds.push_back(read_experiment(document));
  const auto count = document.json.value("seeds", std::uint64_t{1});
  for (std::uint64_t i = 1; i < count; ++i) seeds.push_back(read_experiment(at_seed(document, i)));
  return seeds;
}

std::vector<CheckedExpectation> check_expectations(const SeededExperiments& seeds) {
  for (const auto& one : seeds) {
    if (std::ranges::none_of(one->scenario().expectations, is_about_oracle)) one->leave_out_oracle();
    one->run(expected_labels(*one));
  }
  std::vector<CheckedExpectation> checked;
  for (const Expectation& expectation : seeds.front()->scenario().expectations) {
    std::vector<double> values;
    for (const auto& one : seeds) values.push_back(figure(expectation, *one));
    checked.push_back(check_values(expectation, values));
    if (checked.back().ok) {
      fail_if_empty(expectation, *seeds.front(), checked.back());
      continue;
    }
    const auto bad = std::find_if(values.begin(), values.end(),
                                  [&](double value) { return !check_value(expectation, value).ok; });
    checked.back().around = seeds[static_cast<std::size_t>(bad - values.begin())]->around(expectation);
  }
  for (CheckedExpectation& early : early_ends(seeds)) checked.push_back(std::move(early));
  for (CheckedExpectation& never : never_came(seeds)) checked.push_back(std::move(never));
  return checked;
}

void require_labels(const Scenario& scenario, const std::vector<std::string>& labels) {
  require_known(scenario.file, "policy", all_labels(scenario.policies), labels);
}

std::vector<Table::Column> figure_columns(const std::string& first, const std::vector<std::string>& figures) {
  std::vector<Table::Column> columns{{first, Table::Align::left}};
  for (const std::string& figure : figures) columns.push_back({figure});
  return columns;
}

fs::path made_folder(fs::path folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw InputError(folder.string(), "cannot be made a folder: " + failed.message() + ".");
  return folder;
}

std::map<std::string, std::string> file_bases(const std::vector<std::string>& labels,
                                              const std::string& folder) {
  made_folder(folder);
  std::map<std::string, std::string> bases;
  std::set<std::string> taken;
  for (const std::string& label : labels) {
    std::string name = file_name_of(label);
    while (!taken.insert(name).second) name += '-';  // two labels may differ only in what a name leaves out
    bases[label] = (fs::path{folder} / name).string();
  }
  return bases;
}

}  // namespace vramlab
