// vramlab run: one policy, its full trace.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/training/view.hpp"
#include "lab/page/sections.hpp"
#include "lab/scenario/expectations.hpp"

namespace vramlab {
namespace {

void add_run_options(Options& options) {
  options.add_options()("policy", text_value("LABEL"),
                        "label of the policy to run (default: the scenario's only one)")(
      "trace", text_value("FILE"),
      "write one line an iteration (.jsonl or .csv), or a trace for ui.perfetto.dev (.perfetto.json)")(
      "export", text_value("FILE.pickle"),
      "write the allocator's history as a memory snapshot, as PyTorch does")(
      "first-iterations", po::value<std::int64_t>()->default_value(0)->value_name("N"),
      "run no more than N iterations (0 = all)")(
      "max-entries", po::value<std::uint64_t>()->default_value(0)->value_name("N"),
      "keep the newest N entries of the exported history (0 = all)")("log", po::bool_switch(),
                                                                     "print the lines the policy logs");
  add_device_options(options);
  add_plugin_option(options);
  add_report_option(options);
  add_output_options(options);
}

const PolicyEntry& chosen_policy(const TrainingScenario& scenario, const std::string& label) {
  std::vector<std::string> labels;
  for (const PolicyEntry& entry : scenario.policies) {
    if (entry.label == label || (label.empty() && scenario.policies.size() == 1)) return entry;
    labels.push_back(entry.label);
  }
  const std::string what = label.empty() ? "has several policies; choose one with --policy."
                                         : "no policy is labelled \"" + label + "\".";
  throw InputError(scenario.file, what + suggest_name(label, labels));
}

Table metrics_table(const PolicyResult& result) {
  Table table{{left("metric"), "value"}};
  for (const Metric& metric : result.metrics) table.add_row({metric.name, format_number(metric.value)});
  return table;
}

std::string verdict(const TrainingScenario& scenario, const PolicyResult& result) {
  std::string point;
  for (std::size_t i = 0; i < result.run.final_point.size(); ++i) {
    point += fmt::format("{}{} {}", i ? ", " : "", scenario.setup.bounds.parameters[i].name,
                         result.run.final_point[i]);
  }
  std::string text =
      fmt::format("{} ends at {} after {} changes and {:.0f} OOMs in {:.0f} iterations", result.label, point,
                  result.run.adjustments.size(), *find_metric(result.metrics, "ooms"),
                  *find_metric(result.metrics, "iterations"));
  return text + (result.run.ended_early.empty() ? "." : "; stopped early: " + result.run.ended_early + ".");
}

void cut_short(TrainingScenario& scenario, std::int64_t iterations) {
  if (iterations < 0) throw InputError("", "--first-iterations must be at least 1, or 0 for all.");
  if (iterations > 0) scenario.setup.iterations = std::min(scenario.setup.iterations, iterations);
}

/// What is wanted of the history of a run.
struct HistoryWanted {
  std::string file;  ///< of the snapshot; empty = none
  bool map = false;
  std::uint64_t max_entries = 0;
};

/// A run whose history is kept: twice the same one, as it is long, but for that of a real card.
struct WatchedRun {
  RunSurvey survey;
  RunRecorder recorder;
  std::unique_ptr<RunHistory> history;

  PolicyResult run(TrainingScenario& scenario, const PolicyEntry& entry, const HistoryWanted& wanted) {
    const auto begin = [&](const RunSurvey& seen) {
      history = std::make_unique<RunHistory>(seen, scenario.setup.bounds, wanted.file, wanted.map,
                                             wanted.max_entries);
    };
    if (scenario.setup.make_performer) {
      scenario.setup.watcher = &recorder;
      PolicyResult result = run_policy(scenario, entry);
      begin(recorder.survey());
      recorder.replay(*history);
      return result;
    }
    scenario.setup.watcher = &survey;
    run_policy(scenario, entry);
    begin(survey);
    scenario.setup.watcher = history.get();
    return run_policy(scenario, entry);
  }
};

int run_run(const Arguments& arguments, Output& output) {
  const std::string trace = text_of(arguments, "trace");
  const std::string exported = text_of(arguments, "export");
  require_output_names(operands(arguments),
                       {text_of(arguments, "json"), trace, exported, output.report_file()});
  require_trace_name(trace);
  const std::string file = operands(arguments).front();
  const ScenarioDocument document = output.scenario(file, chosen_policies(arguments, output));
  if (const Kind& kind = kind_of(document); kind.name != "training") {
    throw InputError(file, "is of kind " + kind.name +
                               "; `vramlab compare --policies LABEL` runs one policy of such a scenario.");
  }
  TrainingScenario scenario = read_training(document);
  const PolicyEntry& entry = chosen_policy(scenario, text_of(arguments, "policy"));
  const DeviceMakers device = chosen_device(arguments);
  scenario.setup.make_performer = device.performer;
  require_cards({.make_performer = device.performer, .device_cards = device.cards}, scenario,
                1 + scenario.setup.more_cards.size(), "/more_devices");
  const BackendChoice& backend = scenario.setup.process.allocator.backend;
  if (!backend.is_native() && (scenario.setup.make_performer || !exported.empty())) {
    throw InputError(file + ": /allocator/backend",
                     fmt::format("{} goes with native only: the history and a real card are the caching "
                                 "allocator's.",
                                 exported.empty() ? "--device cuda" : "--export"));
  }
  cut_short(scenario, arguments["first-iterations"].as<std::int64_t>());
  WatchedRun watched;
  Comparison comparison;
  const bool maps = output.wants_report() && backend.is_native();
  if (exported.empty() && !maps) {
    comparison.policies.push_back(run_policy(scenario, entry));
  } else {
    const HistoryWanted wanted{exported, maps, arguments["max-entries"].as<std::uint64_t>()};
    comparison.policies.push_back(watched.run(scenario, entry, wanted));
  }
  const PolicyResult& result = comparison.policies.front();
  output.line(verdict(scenario, result));
  if (result.search) output.line(search_line(scenario, result));
  if (scenario.setup.make_performer) output.line(kOnCard);
  if (scenario.context_assumed) output.line(assumed_context_text(scenario));
  for (const std::string& note : scenario.notes) output.line(note);
  output.next_table(metrics_table(result));
  if (arguments["log"].as<bool>()) {
    for (const std::string& line : result.run.log) output.line(line);
  }
  std::map<std::string, std::string> traces;
  if (!trace.empty()) {
    write_trace(scenario.setup.bounds, result.run.iterations, trace, scenario.name + ": " + result.label);
    traces[result.label] = trace;
    output.wrote(trace);
  }
  if (!exported.empty()) {
    watched.history->finish(result.run.iterations);
    output.wrote(exported);
    if (watched.history->lost() > 0) {
      output.line("{} older entries are not in it (--max-entries).", watched.history->lost());
    }
  }
  if (output.wants_report()) {
    output.add_section(training_section(scenario, comparison, {verdict(scenario, result), ""}));
    if (!maps) {
      output.line("The report has no map of segments: only the native allocator keeps a history.");
    } else if (const auto map = watched.history->map()) {
      output.add_section(
          segments_section(*map, "Memory of " + result.label,
                           {"", fmt::format("{} entries of the allocator's history", map->entries)}));
    } else {  // a map begins with an empty allocator
      output.line("The report has no map of segments: --max-entries left out the beginning of the history.");
    }
  }
  output.write_report();
  output.json(comparison_json(scenario, comparison, traces));
  return kDone;
}

}  // namespace

Verb run_verb() {
  return {.name = "run",
          .summary = "one policy, its full trace",
          .operands = "SCENARIO",
          .count = {1, 1},
          .example = "vramlab run scenarios/ratchet.json --policy settled --trace settled.csv",
          .add_options = add_run_options,
          .run = run_run};
}

}  // namespace vramlab
