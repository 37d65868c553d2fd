// vramlab compare: which policy is best here.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/compare/kinds.hpp"
#include "cli/compare/sweep.hpp"
#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/output/traces.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/kinds/training/view.hpp"
#include "lab/page/sections.hpp"
#include "lab/scenario/sweep.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;

void add_options(Options& options) {
  options.add_options()("policies", po::value<std::string>()->default_value("")->value_name("A,B"),
                        "labels of the policies to run (default: all of the scenario)")(
      "picture", po::value<std::string>()->default_value("")->value_name("FILE"),
      "draw memory and parameters over iterations, or jobs on their cards; .svg or .png")(
      "trace-dir", po::value<std::string>()->default_value("")->value_name("DIR"),
      "write each policy's trace as DIR/LABEL.jsonl (of other kinds: further files, see docs/cli.md)")(
      "seeds", po::value<std::int64_t>()->default_value(1)->value_name("N"),
      "kind jobs: draw the scenario with N seeds; means and standard deviations");
  add_device_option(options);
  add_plugin_option(options);
  add_report_option(options);
  add_sweep_options(options);
  add_output_options(options);
}

std::vector<std::string> split_labels(const std::string& text) {
  std::vector<std::string> labels;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    labels.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (text.ends_with(',')) labels.emplace_back();
  if (std::find(labels.begin(), labels.end(), "") != labels.end()) {
    throw InputError("",
                     "--policies \"" + text + "\" has an empty label; write A,B, or leave it out for all.");
  }
  return labels;
}

double metric(const PolicyResult& result, const char* name) {
  return find_metric(result.metrics, name).value_or(0);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string point_text(const Point& point) { return fmt::format("({})", fmt::join(point, ", ")); }

std::string final_column(const ParameterSpace& space) {
  std::vector<std::string> names;
  for (const Parameter& parameter : space.parameters) names.push_back(parameter.name);
  return fmt::format("final ({})", fmt::join(names, ", "));
}

// A workload whose sample counts as one pixel has no throughput in pixels to show.
bool has_pixels(const Comparison& comparison) {
  return std::any_of(comparison.policies.begin(), comparison.policies.end(), [](const PolicyResult& result) {
    return metric(result, "pixels_per_s") != metric(result, "samples_per_s");
  });
}

Table results_table(const TrainingScenario& scenario, const Comparison& comparison) {
  std::vector<Table::Column> columns{{"policy", Table::Align::left},
                                     {final_column(scenario.setup.bounds)},
                                     {"peak"},
                                     {"mean peak"},
                                     {"peak reserved"},
                                     {"OOMs"},
                                     {"retries"},
                                     {"changes"},
                                     {"turns"},
                                     {"samples/s"}};
  const bool pixels = has_pixels(comparison);
  if (pixels) columns.push_back({"Mpixel/s"});
  columns.push_back({"regret"});
  Table table{std::move(columns)};
  for (const PolicyResult& result : comparison.policies) {
    const auto count = [&](const char* name) { return fmt::format("{:.0f}", metric(result, name)); };
    const auto share = [&](const char* name) { return percent(metric(result, name)); };
    std::vector<std::string> cells{result.label,
                                   point_text(result.run.final_point),
                                   share("peak_allocated_ratio"),
                                   share("mean_peak_ratio"),
                                   share("peak_reserved_ratio"),
                                   count("ooms"),
                                   count("alloc_retries"),
                                   count("adjustments"),
                                   count("direction_changes"),
                                   fmt::format("{:.1f}", metric(result, "samples_per_s"))};
    if (pixels) cells.push_back(fmt::format("{:.3f}", metric(result, "pixels_per_s") / 1e6));
    const auto regret = find_metric(result.metrics, "regret");
    cells.push_back(regret ? percent(*regret) : "-");
    table.add_row(std::move(cells));
  }
  return table;
}

void print_notes(const TrainingScenario& scenario, const Comparison& comparison, Output& output) {
  for (const PolicyResult& result : comparison.policies) {
    if (!result.run.ended_early.empty()) {
      output.line(fmt::format("{} ended after iteration {} of {}: {}.", result.label,
                              result.run.iterations.back().iteration, scenario.setup.iterations,
                              result.run.ended_early));
    }
  }
}

std::string head(const TrainingScenario& scenario) {
  const ProcessSetup& process = scenario.setup.process;
  return fmt::format(
      "{}: {} iterations on {}{}, target {} ± {}, objective {}", scenario.name, scenario.setup.iterations,
      scenario.gpu, process.allocator.limit ? " limited to " + format_bytes(*process.allocator.limit) : "",
      percent(scenario.target.usage), percent(scenario.target.margin), objective_name(scenario.objective));
}

void draw(const TrainingScenario& scenario, const Comparison& comparison, const std::string& file) {
  PictureFrame frame{.title = head(scenario),
                     .parameters = {},
                     .band_low = scenario.target.usage - scenario.target.margin,
                     .band_high = scenario.target.usage + scenario.target.margin};
  for (const Parameter& parameter : scenario.setup.bounds.parameters)
    frame.parameters.push_back(parameter.name);
  std::vector<PictureRun> runs;
  for (const PolicyResult& result : comparison.policies)
    runs.push_back({result.label, &result.run.iterations});
  draw_trace_picture(frame, runs, file);
}

Json compare_training(const TrainingScenario& scenario, const ComparisonQuestion& question, Output& output) {
  const Comparison comparison = compare_policies(scenario, question.labels);
  output.line(verdict(scenario, comparison));
  output.line(head(scenario));
  if (!scenario.batch_note.empty()) output.line(scenario.batch_note);
  output.line("");
  output.table(results_table(scenario, comparison));
  print_notes(scenario, comparison, output);
  std::map<std::string, std::string> traces;
  if (!question.trace_dir.empty()) traces = write_traces(scenario, comparison, question.trace_dir);
  for (const auto& [label, file] : traces) output.wrote(file);
  if (!question.picture.empty()) {
    draw(scenario, comparison, question.picture);
    output.wrote(question.picture);
  }
  if (output.report().wanted()) {
    output.report().add(
        training_section(scenario, comparison, {verdict(scenario, comparison), head(scenario)}));
  }
  return comparison_json(scenario, comparison, traces);
}

ReadyComparison ready_training(const ScenarioDocument& document, const ComparisonQuestion& question) {
  const auto scenario = std::make_shared<TrainingScenario>(read_training(document));
  scenario->setup.make_performer = question.make_performer;
  require_labels(*scenario, question.labels);
  return [=](Output& output) { return compare_training(*scenario, question, output); };
}

/// How a kind of scenario is compared, and which options it knows besides labels.
struct ComparedKind {
  std::string_view name;
  ReadyComparison (*ready)(const ScenarioDocument& document, const ComparisonQuestion& question);
  bool has_picture = false;  ///< --picture
  bool has_traces = false;   ///< --trace-dir
  bool is_drawn = false;     ///< --seeds; every seed gives the others the same run
  bool has_steps = false;    ///< --device cuda
};

constexpr std::array kComparedKinds{
    ComparedKind{.name = "training",
                 .ready = ready_training,
                 .has_picture = true,
                 .has_traces = true,
                 .has_steps = true},
    ComparedKind{.name = "jobs",
                 .ready = ready_jobs_comparison,
                 .has_picture = true,
                 .has_traces = true,
                 .is_drawn = true},
    ComparedKind{.name = "epoch", .ready = ready_epoch_comparison, .has_traces = true},
    ComparedKind{.name = "search", .ready = ready_search_comparison},
    ComparedKind{.name = "snapshot", .ready = ready_snapshot_comparison},
};

// The kinds for which `option` is, in a sentence.
void require_option(bool asked, bool ComparedKind::*known, const ComparedKind& kind, const char* option) {
  if (!asked || kind.*known) return;
  std::string names;
  for (const ComparedKind& one : kComparedKinds) {
    if (one.*known) names += (names.empty() ? "" : " and ") + std::string{one.name};
  }
  throw InputError("", fmt::format("{} is for scenarios of kind {}.", option, names));
}

ReadyComparison ready_comparison(const ScenarioDocument& document, const ComparisonQuestion& question) {
  require_known_kind(document);
  const auto found = std::find_if(kComparedKinds.begin(), kComparedKinds.end(),
                                  [&](const ComparedKind& kind) { return kind.name == document.kind; });
  // A file without a kind is read as one of training, which says what is missing.
  const ComparedKind& kind = found == kComparedKinds.end() ? kComparedKinds.front() : *found;
  require_option(!question.picture.empty(), &ComparedKind::has_picture, kind, "--picture");
  require_option(!question.trace_dir.empty(), &ComparedKind::has_traces, kind, "--trace-dir");
  require_option(question.seeds > 1, &ComparedKind::is_drawn, kind, "--seeds");
  require_option(static_cast<bool>(question.make_performer), &ComparedKind::has_steps, kind, "--device cuda");
  return kind.ready(document, question);
}

// A scenario with a sweep is many; it stands alone.
int run_sweep(const ScenarioDocument& document, const ComparisonQuestion& question,
              const Arguments& arguments, Output& output) {
  const bool one_run = !question.picture.empty() || !question.trace_dir.empty() || question.seeds > 1 ||
                       static_cast<bool>(question.make_performer);
  if (one_run) {
    throw InputError("",
                     "--picture, --trace-dir, --seeds and --device cuda are for one run of each policy; " +
                         document.file + " is a sweep.");
  }
  int code = kDone;
  const Json result = compare_sweep(document, question.labels, arguments, output, code);
  if (code != kDone) return code;
  output.write_report();
  output.json(result);
  return kDone;
}

int run(const Arguments& arguments) {
  Output output{arguments};
  const ComparisonQuestion question{.labels = split_labels(arguments["policies"].as<std::string>()),
                                    .picture = arguments["picture"].as<std::string>(),
                                    .trace_dir = arguments["trace-dir"].as<std::string>(),
                                    .report = output.report().wanted(),
                                    .seeds = arguments["seeds"].as<std::int64_t>(),
                                    .make_performer = chosen_performer(arguments)};
  if (question.seeds < 1 || question.seeds > 1000) throw InputError("", "--seeds must be 1 to 1000.");
  const auto files = operands(arguments);
  if (files.size() > 1 && !(question.picture.empty() && question.trace_dir.empty())) {
    throw InputError("", "--picture and --trace-dir take one scenario at a time.");
  }
  require_output_names(files, {arguments["json"].as<std::string>(), question.picture, output.report().file(),
                               arguments["results"].as<std::string>()});
  if (!question.picture.empty()) require_picture_name(question.picture);
  std::vector<ScenarioDocument> documents;
  const auto policies = chosen_policies(arguments);
  for (const std::string& file : files) documents.push_back(read_document(file, policies));
  const auto sweeps = std::count_if(documents.begin(), documents.end(), has_sweep);
  if (sweeps > 0 && documents.size() > 1) throw InputError("", "a scenario with a sweep is compared alone.");
  if (sweeps > 0) return run_sweep(documents.front(), question, arguments, output);
  require_no_sweep_options(arguments);
  std::vector<ReadyComparison> scenarios;  // all are read before the first runs: a late typo costs no time
  for (const ScenarioDocument& document : documents)
    scenarios.push_back(ready_comparison(document, question));
  Json results = Json::array();
  for (const ReadyComparison& compare : scenarios) results.push_back(compare(output));
  output.write_report();
  output.json(results.size() == 1 ? results.front() : results);
  return kDone;
}

}  // namespace

Verb compare_verb() {
  return {.name = "compare",
          .summary = "which policy is best here: a table with one row a policy",
          .operands = "SCENARIO...",
          .example = "vramlab compare scenarios/ratchet.json --picture ratchet.svg",
          .least_operands = 1,
          .most_operands = 1000,
          .add_options = add_options,
          .run = run};
}

}  // namespace vramlab
