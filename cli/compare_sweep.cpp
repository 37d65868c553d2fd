#include "cli/compare_sweep.hpp"

#include <algorithm>
#include <array>
#include <iostream>

#include <fmt/format.h>

#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/sweep_results_file.hpp"
#include "cli/sweep_tables.hpp"
#include "cli/threads_option.hpp"
#include "lab/metric_table.hpp"
#include "lab/report_sections.hpp"
#include "lab/result_json.hpp"
#include "lab/scenario_kinds.hpp"
#include "lab/sweep_run.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;

// What a sweep is mostly about, by its kind.
constexpr std::array kShownMetrics{
    std::pair{"training", "regret"},
    std::pair{"jobs", "mean_completion_s"},
    std::pair{"epoch", "samples_per_s"},
    std::pair{"search", "batch"},
};

const MetricDescription& shown_metric(const std::string& kind, const std::string& asked) {
  std::string name = asked;
  for (const auto& [one, metric] : kShownMetrics) {
    if (name.empty() && kind == one) name = metric;
  }
  std::vector<std::string> names;
  for (const MetricDescription& metric : metrics_of(kind)) {
    if (metric.name == name) return metric;
    names.push_back(metric.name);
  }
  throw InputError("--metric",
                   "\"" + name + "\" is no metric of such a scenario." + suggest_name(name, names));
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
    for (const LabelledFigures& result : *results[i]) {
      Json entry;
      entry["label"] = result.label;
      for (const Metric& one : result.metrics) entry["metrics"][one.name] = number_json(one.value);
      run["policies"].push_back(std::move(entry));
    }
    json["runs"].push_back(std::move(run));
  }
  return json;
}

// Stopped: what is there is kept, and the user is told how to go on.
void say_stopped(std::size_t done, std::size_t all, const std::string& file) {
  std::cerr << fmt::format("Stopped after {} of {} runs. ", done, all);
  if (file.empty()) {
    std::cerr << "Nothing was kept; with --results FILE.jsonl a later call goes on from there.\n";
  } else if (done > 0) {
    std::cerr << "They are in " << file << "; the same command goes on from there.\n";
  } else {
    std::cerr << "There is nothing to keep yet.\n";
  }
}

// Says both errors if what was finished cannot be kept either.
template <class Keep>
void keep_after(const InputError& error, const Keep& keep) {
  try {
    keep();
  } catch (const InputError& second) {
    std::vector<Problem> problems = error.problems();
    problems.insert(problems.end(), second.problems().begin(), second.problems().end());
    throw InputError(std::move(problems));
  }
}

}  // namespace

void add_sweep_options(Options& options) {
  options.add_options()(
      "results", po::value<std::string>()->default_value("")->value_name("FILE"),
      "of a sweep: one line a run and policy, .jsonl or .csv; what the file has is not run again")(
      "metric", po::value<std::string>()->default_value("")->value_name("NAME"),
      "of a sweep: the metric to show (default: regret, mean_completion_s, samples_per_s or batch, by its "
      "kind)");
  add_threads_option(options);
}

void require_no_sweep_options(const Arguments& arguments) {
  if (!arguments["results"].as<std::string>().empty()) {
    throw InputError("", "--results is for scenarios with a \"sweep\"; --json writes this result.");
  }
  if (!arguments["metric"].as<std::string>().empty()) {
    throw InputError("", "--metric is for scenarios with a \"sweep\"; the table here shows all.");
  }
}

Json compare_sweep(const ScenarioText& scenario, const std::vector<std::string>& labels,
                   const Arguments& arguments, Output& output, int& code) {
  require_sweep(scenario);
  const std::string kind = scenario.kind.empty() ? "training" : scenario.kind;
  const MetricDescription& metric = shown_metric(kind, arguments["metric"].as<std::string>());
  const SweepResultsFile file{arguments["results"].as<std::string>()};
  const Sweep sweep = read_sweep(scenario);
  const auto keys = sweep_keys(sweep, labels, VRAMLAB_VERSION);
  SweepResults results = file.read(sweep, keys);
  const std::size_t before = finished_runs(results);
  const auto keep = [&] { return file.keep(sweep, results, keys); };
  try {
    const Interrupt interrupt;
    Progress progress{sweep.runs.size() - before, "runs", arguments["quiet"].as<bool>()};
    run_sweep(sweep,
              {.labels = labels,
               .threads = chosen_threads(arguments),
               .stop = &interrupt.flag(),
               .on_run = [&] { progress.step(); }},
              results);
  } catch (const InputError& error) {  // one run that could not be made loses no other
    keep_after(error, keep);
    throw;
  } catch (const std::exception& error) {
    keep_after(InputError("", error.what()), keep);
    throw;
  }
  const std::size_t done = finished_runs(results);
  if (done < sweep.runs.size()) {
    keep();
    say_stopped(done, sweep.runs.size(), file.name());
    code = kStoppedByUser;
    return nullptr;
  }
  const Json json = parse_json(scenario.text, scenario.file);
  const auto spreads = spreads_of(results, metric);
  const std::string name = json["name"].get<std::string>();
  const std::string head =
      fmt::format("{}: {} runs of {} policies{}", name, done, spreads.size(),
                  before > 0 ? fmt::format(", {} of them from {}", before, file.name()) : "");
  output.line(sweep_verdict(spreads, metric, done));
  output.line(head);
  output.line("");
  output.table(spreads_table(spreads, metric));
  print_matrices(sweep, results, spreads, metric, output);
  if (keep()) output.wrote(file.name());  // behind the tables: on a full disk they are what is left
  if (output.report().wanted()) {
    output.report().add(sweep_section(sweep, results,
                                      {name, json.value("description", std::string{}), kind, metric.name},
                                      {sweep_verdict(spreads, metric, done), head}));
  }
  Json result = results_json(sweep, results);
  Json whole;
  whole["scenario"] = name;
  whole.update(result);
  return whole;
}

}  // namespace vramlab
