// vramlab compare: which policy is best here.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "cli/card.hpp"
#include "cli/compare_jobs.hpp"
#include "cli/file_names.hpp"
#include "cli/output.hpp"
#include "cli/run_files.hpp"
#include "cli/verb.hpp"
#include "lab/comparison.hpp"
#include "lab/result_json.hpp"
#include "lab/scenario_parts.hpp"
#include "lab/verdict.hpp"
#include "report/trace_picture.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;

void add_options(Options& options) {
  options.add_options()("policies", po::value<std::string>()->default_value("")->value_name("A,B"),
                        "labels of the policies to run (default: all of the scenario)")(
      "picture", po::value<std::string>()->default_value("")->value_name("FILE"),
      "draw memory and parameters over iterations; .svg or .png")(
      "trace-dir", po::value<std::string>()->default_value("")->value_name("DIR"),
      "write each policy's trace as DIR/LABEL.jsonl");
  add_device_option(options);
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

Table results_table(const Scenario& scenario, const Comparison& comparison) {
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

void print_notes(const Scenario& scenario, const Comparison& comparison, Output& output) {
  for (const PolicyResult& result : comparison.policies) {
    if (!result.run.ended_early.empty()) {
      output.line(fmt::format("{} ended after iteration {} of {}: {}.", result.label,
                              result.run.iterations.back().iteration, scenario.setup.iterations,
                              result.run.ended_early));
    }
  }
}

std::string head(const Scenario& scenario) {
  const ProcessSetup& process = scenario.setup.process;
  return fmt::format(
      "{}: {} iterations on {}{}, target {} ± {}, objective {}", scenario.name, scenario.setup.iterations,
      scenario.gpu, process.allocator.limit ? " limited to " + format_bytes(*process.allocator.limit) : "",
      percent(scenario.target.usage), percent(scenario.target.margin), objective_name(scenario.objective));
}

void draw(const Scenario& scenario, const Comparison& comparison, const std::string& file) {
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

int run_jobs(const std::vector<ScenarioText>& files, const Arguments& arguments, Output& output) {
  if (!arguments["picture"].as<std::string>().empty() || !arguments["trace-dir"].as<std::string>().empty()) {
    throw InputError("", "--picture and --trace-dir are for scenarios of kind training.");
  }
  if (wants_card(arguments)) throw InputError("", "--device cuda is for scenarios of kind training.");
  std::vector<JobsScenario> scenarios;
  for (const ScenarioText& file : files) scenarios.push_back(parse_jobs_scenario(file.text, file.file));
  Json results = Json::array();
  const auto labels = split_labels(arguments["policies"].as<std::string>());
  for (const JobsScenario& scenario : scenarios) results.push_back(compare_jobs(scenario, labels, output));
  output.json(results.size() == 1 ? results.front() : results);
  return kDone;
}

int run(const Arguments& arguments) {
  Output output{arguments};
  const std::string picture = arguments["picture"].as<std::string>();
  const std::string trace_dir = arguments["trace-dir"].as<std::string>();
  const auto files = operands(arguments);
  if (files.size() > 1 && !(picture.empty() && trace_dir.empty())) {
    throw InputError("", "--picture and --trace-dir take one scenario at a time.");
  }
  require_output_names(files, {arguments["json"].as<std::string>(), picture});
  if (!picture.empty()) require_picture_name(picture);
  std::vector<ScenarioText> texts;
  for (const std::string& file : files) texts.push_back(read_scenario_text(file));
  const auto jobs =
      std::count_if(texts.begin(), texts.end(), [](const ScenarioText& text) { return text.kind == "jobs"; });
  if (jobs > 0 && jobs < std::ssize(texts)) {
    throw InputError(
        "", "some of these scenarios are of kind jobs and some are not; compare one kind at a time.");
  }
  if (jobs > 0) return run_jobs(texts, arguments, output);
  std::vector<Scenario> scenarios;  // all are read before the first runs: a late typo costs no time
  const auto labels = split_labels(arguments["policies"].as<std::string>());
  for (const ScenarioText& text : texts) {
    scenarios.push_back(parse_scenario(text.text, text.file));
    choose_device(arguments, scenarios.back());
    require_labels(scenarios.back(), labels);
  }

  Json results = Json::array();
  for (const Scenario& scenario : scenarios) {
    const Comparison comparison = compare_policies(scenario, labels);
    output.line(verdict(scenario, comparison));
    output.line(head(scenario));
    output.line("");
    output.table(results_table(scenario, comparison));
    print_notes(scenario, comparison, output);
    std::map<std::string, std::string> traces;
    if (!trace_dir.empty()) traces = write_traces(scenario, comparison, trace_dir);
    for (const auto& [label, file] : traces) output.wrote(file);
    if (!picture.empty()) {
      draw(scenario, comparison, picture);
      output.wrote(picture);
    }
    results.push_back(comparison_json(scenario, comparison, traces));
  }
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
