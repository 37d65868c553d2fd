// vramlab compare: which policy is best here.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cli/compare/seeds.hpp"
#include "cli/compare/spreads.hpp"
#include "cli/compare/sweep.hpp"
#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/scenario/sweep.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace {

void add_compare_options(Options& options) {
  add_labels_option(options);
  options.add_options()("picture", text_value("FILE"),
                        "draw memory and parameters over iterations, or jobs on their cards; .svg or .png")(
      "trace-dir", text_value("DIR"),
      "write each policy's trace as DIR/LABEL.jsonl (of other kinds: further files, see docs/cli.md)")(
      "seeds", po::value<std::int64_t>()->default_value(1)->value_name("N"),
      "run every scenario with N seeds, from its own on; means and standard deviations");
  add_device_options(options);
  add_plugin_option(options);
  add_report_option(options);
  add_sweep_options(options);
  add_output_options(options);
}

// All files are read, and labels looked up, before the first runs: a late typo costs no time. What is wrong
// with any of them is said at once.
std::vector<std::unique_ptr<Experiment>> read_all(const std::vector<ScenarioDocument>& documents,
                                                  const std::vector<std::string>& labels,
                                                  const Question& question) {
  std::vector<std::unique_ptr<Experiment>> experiments;
  std::vector<Problem> problems;
  for (const ScenarioDocument& document : documents) {
    try {
      experiments.push_back(read_experiment(document, question));
      experiments.back()->require_labels(labels);
    } catch (const InputError& error) {
      for (const Problem& one : error.problems()) {
        // An option that is wrong for several files is said once.
        if (std::find(problems.begin(), problems.end(), one) == problems.end()) problems.push_back(one);
      }
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return experiments;
}

// Prints what an experiment came to, writes what was asked for, and returns the result.
Json show(Experiment& experiment, bool on_card, Output& output) {
  output.line(experiment.verdict());
  for (const std::string& line : experiment.head()) output.line(line);
  if (on_card) output.line(kOnCard);
  for (const Table& table : experiment.tables()) output.next_table(table);
  for (const std::string& line : experiment.endings()) output.line(line);
  for (const std::string& file : experiment.write_files()) output.wrote(file);
  if (output.wants_report()) {
    for (Json& section : experiment.sections()) output.add_section(std::move(section));
  }
  return experiment.json();
}

// A scenario with a sweep is many; it stands alone.
int run_sweep(const ScenarioDocument& document, const std::vector<std::string>& labels,
              const Question& question, const Arguments& arguments, Output& output) {
  const bool one_run = !question.picture.empty() || !question.trace_dir.empty() || question.seeds > 1 ||
                       static_cast<bool>(question.make_performer);
  if (one_run) {
    throw InputError("",
                     "--picture, --trace-dir, --seeds and --device cuda are for one run of each policy; " +
                         document.file + " is a sweep.");
  }
  const std::optional<Json> result = compare_sweep(document, labels, arguments, output);
  if (!result) return kStoppedByUser;
  output.write_report();
  output.json(*result);
  return kDone;
}

int run_with_seeds(const std::vector<ScenarioDocument>& documents, const std::vector<std::string>& labels,
                   const Question& question, const Arguments& arguments, Output& output) {
  if (!question.picture.empty() || !question.trace_dir.empty() || question.report) {
    throw InputError("", "--picture, --trace-dir and --report show one run; leave --seeds out.");
  }
  if (question.make_performer && !text_of(arguments, "results").empty()) {
    throw InputError("--results", "keeps simulated runs; leave it or --device cuda out.");
  }
  for (const ScenarioDocument& document : documents) {
    if (kind_of(document).sweep_metric.empty()) {
      throw InputError(document.file,
                       "a scenario of kind " + document.kind + " draws nothing; leave --seeds out.");
    }
    shown_metric(document, arguments);
  }
  const auto experiments = read_all(documents, labels, question);
  const auto all = run_seeds(documents, labels, question, arguments, output);
  if (all.empty()) return kStoppedByUser;
  Json results = Json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    results.push_back(experiments[i]->take_seeds(over_seeds(all[i]))
                          ? show(*experiments[i], question.make_performer != nullptr, output)
                          : show_seeds(documents[i], *experiments[i], all[i], arguments, output));
  }
  output.json(results.size() == 1 ? results.front() : results);
  return kDone;
}

int run_compare(const Arguments& arguments, Output& output) {
  const auto labels = chosen_labels(arguments);
  DeviceMakers device = chosen_device(arguments);
  const Question question{.seeds = arguments["seeds"].as<std::int64_t>(),
                          .picture = text_of(arguments, "picture"),
                          .trace_dir = text_of(arguments, "trace-dir"),
                          .report = output.wants_report(),
                          .all_rows = text_of(arguments, "format") == "csv",
                          .threads = chosen_threads(arguments),
                          .make_performer = std::move(device.performer),
                          .make_job_card = std::move(device.job_card),
                          .device_cards = device.cards};
  if (question.seeds < 1 || question.seeds > 1000) throw InputError("", "--seeds must be 1 to 1000.");
  const auto files = operands(arguments);
  if (files.size() > 1 && !(question.picture.empty() && question.trace_dir.empty())) {
    throw InputError("", "--picture and --trace-dir take one scenario at a time.");
  }
  require_output_names(files, {text_of(arguments, "json"), question.picture, output.report_file(),
                               text_of(arguments, "results")});
  if (!question.picture.empty()) require_picture_name(question.picture);
  std::vector<ScenarioDocument> documents;
  const auto policies = chosen_policies(arguments, output);
  for (const std::string& file : files) documents.push_back(output.scenario(file, policies));
  const auto sweeps = std::count_if(documents.begin(), documents.end(), has_sweep);
  if (sweeps > 0 && documents.size() > 1) throw InputError("", "a scenario with a sweep is compared alone.");
  if (sweeps > 0) return run_sweep(documents.front(), labels, question, arguments, output);
  require_no_sweep_options(arguments);
  if (question.seeds > 1) return run_with_seeds(documents, labels, question, arguments, output);
  if (output.ranks() != nullptr) {
    throw InputError("mpirun",
                     "ranks share the runs of a sweep or of --seeds N; this is one run of each policy.");
  }
  auto experiments = read_all(documents, labels, question);
  if (!question.trace_dir.empty()) {
    require_kept(output.inputs(), experiments.front()->labels(), question.trace_dir);
  }
  Json results = Json::array();
  for (auto& experiment : experiments) {
    experiment->run(labels);
    results.push_back(show(*experiment, question.make_performer != nullptr, output));
    experiment.reset();
  }
  output.write_report();
  output.json(results.size() == 1 ? results.front() : results);
  return kDone;
}

}  // namespace

Verb compare_verb() {
  return {.name = "compare",
          .summary = "which policy is best here: a table with one row a policy",
          .operands = "SCENARIO...",
          .count = {1, 1000},
          .example = "vramlab compare scenarios/ratchet.json --picture ratchet.svg",
          .add_options = add_compare_options,
          .run = run_compare,
          .has_tasks = true};
}

}  // namespace vramlab
