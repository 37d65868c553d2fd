#include "cli/compare/sweep.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/compare/spreads.hpp"
#include "cli/options.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/tasks.hpp"
#include "core/error.hpp"
#include "lab/best.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/metric.hpp"
#include "lab/page/sections.hpp"
#include "lab/scenario/expectations.hpp"
#include "lab/scenario/sweep_results.hpp"
#include "recordings/input_file.hpp"
#include "report/output_file.hpp"

namespace vramlab {
namespace {

/// The file of --results, for this program alone while it works.
class KeptResults {
 public:
  /// Nothing is kept without a name.
  KeptResults(const Sweep& sweep, std::vector<std::string> keys, std::string name)
      : sweep_(sweep), keys_(std::move(keys)), name_(std::move(name)) {
    if (name_.empty()) return;
    require_results_name(name_);
    file_.emplace(name_);
  }

  [[nodiscard]] SweepResults read() const {
    return file_ ? read_sweep_results(sweep_, keys_, name_) : SweepResults(sweep_.runs.size());
  }

  /// A run has ended: JSON lines have it from now on.
  void add(std::size_t run, const std::vector<LabelledFigures>& results) {
    if (!file_ || name_.ends_with(".csv")) return;
    file_->append(run_lines(sweep_, keys_, run, results));
    has_new_ = true;
  }

  /// Puts the file into the order of the sweep, and returns whether it has anything new. Also where no run is
  /// new the sweep may have other names and another order by now.
  bool put_in_order(const SweepResults& results) const {
    if (!file_ || finished_runs(results) == 0) return false;
    const std::string text = sweep_text(sweep_, results, keys_, name_);
    if (read_input_file(name_) == text) return has_new_;
    write_file(name_, text);
    return true;
  }

 private:
  const Sweep& sweep_;
  std::vector<std::string> keys_;
  std::string name_;
  std::optional<GrowingFile> file_;
  bool has_new_ = false;
};

constexpr std::size_t kMostDown = 40;  // values of an axis that a terminal shows
constexpr std::size_t kMostAcross = 12;

// Means over what is not shown: the first axis down, the second across.
Table matrix(const Sweep& sweep, const SweepResults& results, const std::string& policy,
             const MetricDescription& metric) {
  const bool two = sweep.axes.size() > 1;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<double, std::size_t>> sums;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    for (const LabelledFigures& result : *results[i]) {
      const auto value = figure(result, metric.name);
      if (result.label != policy || !value) continue;
      auto& [sum, count] = sums[{sweep.runs[i].at[0], two ? sweep.runs[i].at[1] : 0}];
      sum += *value;
      ++count;
    }
  }
  std::vector<Table::Column> columns{left(sweep.axes[0].name + (two ? " \\ " + sweep.axes[1].name : ""))};
  const std::size_t across = two ? sweep.axes[1].values.size() : 1;
  for (std::size_t c = 0; c < across; ++c)
    columns.push_back(two ? value_text(sweep.axes[1].values[c]) : metric.title);
  Table table{std::move(columns)};
  for (std::size_t r = 0; r < sweep.axes[0].values.size(); ++r) {
    std::vector<std::string> cells{value_text(sweep.axes[0].values[r])};
    for (std::size_t c = 0; c < across; ++c) {
      const auto sum = sums.find({r, c});
      cells.push_back(sum == sums.end()
                          ? kNoFigure
                          : figure_text(sum->second.first / static_cast<double>(sum->second.second), metric));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

// For each policy but the oracle. What is wider than a terminal is in the report and in the results.
void print_matrices(const Sweep& sweep, const SweepResults& results, const std::vector<Spread>& spreads,
                    const MetricDescription& metric, Output& output) {
  if (sweep.axes[0].values.size() > kMostDown ||
      (sweep.axes.size() > 1 && sweep.axes[1].values.size() > kMostAcross)) {
    output.line("\nThe axes are too long for a table here; --report shows a heat map.");
    return;
  }
  for (const Spread& spread : spreads) {
    if (spread.policy == "oracle" || spread.values.empty()) continue;
    output.line("\n{} of {}{}", metric.title, spread.policy,
                sweep.axes.size() > 2 ? ", means over the other axes" : "");
    output.table(matrix(sweep, results, spread.policy, metric));
  }
}

Json results_json(const Sweep& sweep, const SweepResults& results) {
  Json json;
  json["axes"] = Json::array();
  for (const SweepAxis& axis : sweep.axes)
    json["axes"].push_back({{"name", axis.name}, {"key", axis.pointer}, {"values", axis.values}});
  json["runs"] = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    Json run;
    for (std::size_t a = 0; a < sweep.axes.size(); ++a)
      run["at"][sweep.axes[a].name] = sweep.axes[a].values[sweep.runs[i].at[a]];
    run["policies"] = Json::array();
    for (const LabelledFigures& result : *results[i])
      run["policies"].push_back({{"label", result.label}, {"metrics", figures_json(result.metrics)}});
    json["runs"].push_back(std::move(run));
  }
  return json;
}

// Whether a run is on a card whose context nobody measured. Only axes of cards can tell runs apart.
bool assumes_contexts(const Sweep& sweep) {
  const bool one_for_all = std::none_of(sweep.axes.begin(), sweep.axes.end(), [](const SweepAxis& axis) {
    return axis.pointer.starts_with("/device") || axis.pointer.starts_with("/more_devices") ||
           axis.pointer.starts_with("/cards");
  });
  const auto assumes = [](const SweepRun& run) {
    return read_experiment(run.scenario)->scenario().context_assumed;
  };
  const auto end = one_for_all ? sweep.runs.begin() + 1 : sweep.runs.end();
  return std::any_of(sweep.runs.begin(), end, assumes);
}

// Says both errors if what was finished cannot be kept either.
template <class Keep>
void keep_after(const InputError& error, const Keep& keep) {
  try {
    keep();
  } catch (const InputError& second) {
    std::vector<Problem> problems = error.problems();
    for (const Problem& one : second.problems()) {  // on a full disk they are the same
      if (std::ranges::find(problems, one) == problems.end()) problems.push_back(one);
    }
    throw InputError(std::move(problems));
  }
}

/// A sweep whose results are shown.
struct ShownSweep {
  const ScenarioDocument& scenario;
  const Sweep& sweep;
  const MetricDescription& metric;
  std::string note;  ///< behind the number of runs
};

// Prints what the runs so far came to, and returns it.
Json show_sweep(const ShownSweep& shown, const SweepResults& results, Output& output) {
  const auto& [scenario, sweep, metric, note] = shown;
  const std::size_t done = finished_runs(results);
  const auto spreads = spreads_of(results, metric);
  const std::string name = scenario.json["name"].get<std::string>();
  const bool assumed = assumes_contexts(sweep);
  const std::string head = fmt::format("{}: {} runs of {} policies{}{}", name, done, spreads.size(),
                                       assumed ? " (context assumed)" : "", note);
  const std::string verdict = sweep_verdict(spreads, metric, done);
  output.line(verdict);
  output.line(head);
  if (const std::string rule = sweep_rule(metric); !rule.empty()) output.line(rule);
  output.next_table(spreads_table(spreads, metric));
  const auto below = [](const Spread& spread) {
    return std::ranges::any_of(spread.values, [](double value) { return value < 0; });
  };
  if (metric.name == "regret" && std::ranges::any_of(spreads, below)) output.line(kBelowOracle);
  print_matrices(sweep, results, spreads, metric, output);
  if (output.wants_report()) {
    output.add_section(sweep_section(
        sweep, results,
        {name, scenario.json.value("description", std::string{}), kind_of(scenario).name, metric.name},
        {verdict, head}));
  }
  Json whole = {{"scenario", name}, {"context_assumed", assumed}};
  whole.update(results_json(sweep, results));
  return whole;
}

// The part that --shard names; all of it without one.
SweepShard chosen_shard(const Arguments& arguments) {
  const std::string text = text_of(arguments, "shard");
  if (text.empty()) return {};
  if (text_of(arguments, "results").empty()) {
    throw InputError("--shard", "a part of a sweep is of use in a file only: name one with --results.");
  }
  return parse_shard(text);
}

// Runs that the file has of other parts: of a sweep that had other values once, or of a file named by
// mistake.
std::size_t runs_of_others(const SweepResults& results, const SweepShard& shard) {
  std::size_t others = 0;
  for (std::size_t i = 0; i < results.size(); ++i) others += results[i] && !shard.has(i) ? 1 : 0;
  return others;
}

std::size_t missing_runs(const SweepResults& results, const SweepShard& shard) {
  std::size_t missing = 0;
  for (std::size_t i = 0; i < results.size(); ++i) missing += !results[i] && shard.has(i) ? 1 : 0;
  return missing;
}

}  // namespace

void add_sweep_options(Options& options) {
  options.add_options()(
      "results", text_value("FILE"),
      "of a sweep or --seeds: one line a run (and policy), .jsonl (written as runs end) or, of "
      "a sweep, .csv (at the end); what the file has is not run again")(
      "resume", po::bool_switch(), "go on with --results, which must have something of this command")(
      "shard", text_value("K/N"),
      "of a sweep: only every N-th run, from the K-th on; vramlab merge joins them")(
      "metric", text_value("NAME"),
      "of a sweep or --seeds: the metric to show (default: regret, mean_completion_s, samples_per_s or "
      "batch, by its "
      "kind)");
  add_threads_option(options);
}

void require_no_sweep_options(const Arguments& arguments) {
  if (!text_of(arguments, "shard").empty()) {
    throw InputError("", "--shard is for scenarios with a \"sweep\".");
  }
  if (arguments["seeds"].as<std::int64_t>() > 1) return;  // which are many runs as well
  if (arguments["resume"].as<bool>()) {
    throw InputError("", "--resume is for scenarios with a \"sweep\", and for --seeds.");
  }
  if (!text_of(arguments, "results").empty()) {
    throw InputError(
        "", "--results is for scenarios with a \"sweep\", and for --seeds; --json writes this result.");
  }
  if (!text_of(arguments, "metric").empty()) {
    throw InputError(
        "", "--metric is for scenarios with a \"sweep\", and for --seeds; the table here shows all.");
  }
}

std::optional<Json> compare_sweep(const ScenarioDocument& scenario, const std::vector<std::string>& labels,
                                  const Arguments& arguments, Output& output) {
  const MetricDescription& metric = shown_metric(scenario, arguments);
  const auto workers = chosen_workers(arguments, output);
  const std::string file = workers->hands_out() ? text_of(arguments, "results") : "";
  const SweepShard shard = chosen_shard(arguments);
  const Sweep sweep = read_sweep(scenario);
  const auto keys = sweep_keys(sweep, labels, VRAMLAB_VERSION);
  KeptResults kept{sweep, keys, file};
  SweepResults results = kept.read();
  const std::size_t before = finished_runs(results);
  const std::size_t others = runs_of_others(results, shard);
  if (workers->hands_out() && arguments["resume"].as<bool>() && before == 0) {
    throw InputError(file.empty() ? "--resume" : file,
                     "there is nothing to go on with: no run of this sweep was kept.");
  }
  try {
    const Interrupt interrupt{output.call() == nullptr};
    Progress progress{shard.count(sweep.runs.size()), "runs",
                      output.call() != nullptr || arguments["quiet"].as<bool>()};
    run_sweep(sweep,
              {.labels = labels,
               .threads = own_threads(arguments, output),
               .workers = workers.get(),
               .keys = keys,
               .stop = &interrupt.flag(),
               .stopped =
                   [&] {
                     std::cerr << stopped_text(finished_runs(results) - others,
                                               shard.count(sweep.runs.size()), "runs", file);
                   },
               .shard = shard,
               .on_run =
                   [&](std::size_t run, const std::vector<LabelledFigures>& figures) {
                     kept.add(run, figures);
                     progress.step();
                   }},
              results);
  } catch (const InputError& error) {  // one run that could not be made loses no other
    keep_after(error, [&] { kept.put_in_order(results); });
    throw;
  } catch (const std::exception& error) {
    keep_after(InputError("", error.what()), [&] { kept.put_in_order(results); });
    throw;
  }
  if (missing_runs(results, shard) > 0) {
    kept.put_in_order(results);
    return std::nullopt;
  }
  std::string note = shard.of > 1 ? fmt::format(", part {} of {}", shard.number, shard.of) : "";
  if (before > 0) note += fmt::format(", {} of them from {}", before, file);
  if (others > 0) note += fmt::format(", {} of other parts", others);
  Json whole = show_sweep({scenario, sweep, metric, note}, results, output);
  if (kept.put_in_order(results))
    output.wrote(file);  // behind the tables: on a full disk they are what is left
  return whole;
}

std::pair<Json, std::size_t> merge_sweep(const ScenarioDocument& scenario,
                                         const std::vector<std::string>& parts, const Arguments& arguments,
                                         Output& output) {
  const MetricDescription& metric = shown_metric(scenario, arguments);
  const std::string file = text_of(arguments, "results");
  const Sweep sweep = read_sweep(scenario);
  const auto keys = sweep_keys(sweep, chosen_labels(arguments), VRAMLAB_VERSION);
  const KeptResults kept{sweep, keys, file};
  SweepResults all = kept.read();
  for (const std::string& part : parts) {
    SweepResults read = read_sweep_results(sweep, keys, part);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (read[i] && all[i] && run_lines(sweep, keys, i, *read[i]) != run_lines(sweep, keys, i, *all[i])) {
        throw InputError(part, "has other figures than another file of the run at " +
                                   sweep.point_text(sweep.runs[i]) + ".");
      }
      if (read[i]) all[i] = std::move(read[i]);
    }
  }
  Json whole =
      show_sweep({scenario, sweep, metric, fmt::format(", from {} files", parts.size())}, all, output);
  if (kept.put_in_order(all)) output.wrote(file);
  return {std::move(whole), missing_runs(all, {})};
}

}  // namespace vramlab
