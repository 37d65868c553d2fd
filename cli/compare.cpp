// vramlab compare: which policy is best here.
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/run_files.hpp"
#include "cli/verb.hpp"
#include "lab/comparison.hpp"
#include "lab/result_json.hpp"
#include "report/trace_picture.hpp"

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
  add_output_options(options);
}

std::vector<std::string> split_labels(const std::string& text) {
  std::vector<std::string> labels;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) labels.push_back(text.substr(begin, end - begin));
    begin = end + 1;
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

Table results_table(const Scenario& scenario, const Comparison& comparison) {
  using Align = Table::Align;
  Table table{{{"policy", Align::left},
               {final_column(scenario.setup.bounds)},
               {"peak"},
               {"mean peak"},
               {"peak reserved"},
               {"OOMs"},
               {"retries"},
               {"changes"},
               {"turns"},
               {"samples/s"},
               {"Mpixel/s"},
               {"regret"}}};
  for (const PolicyResult& result : comparison.policies) {
    const auto regret = find_metric(result.metrics, "regret");
    table.add_row(
        {result.label, point_text(result.run.final_point), percent(metric(result, "peak_allocated_ratio")),
         percent(metric(result, "mean_peak_ratio")), percent(metric(result, "peak_reserved_ratio")),
         fmt::format("{:.0f}", metric(result, "ooms")),
         fmt::format("{:.0f}", metric(result, "alloc_retries")),
         fmt::format("{:.0f}", metric(result, "adjustments")),
         fmt::format("{:.0f}", metric(result, "direction_changes")),
         fmt::format("{:.1f}", metric(result, "samples_per_s")),
         fmt::format("{:.3f}", metric(result, "pixels_per_s") / 1e6), regret ? percent(*regret) : "-"});
  }
  return table;
}

const PolicyResult* best_policy(const Comparison& comparison) {
  const PolicyResult* best = nullptr;
  for (const PolicyResult& result : comparison.policies) {
    if (result.policy == "oracle") continue;
    const bool safe = metric(result, "ooms") == 0;
    const bool best_safe = best != nullptr && metric(*best, "ooms") == 0;
    if (best == nullptr || (safe && !best_safe) ||
        (safe == best_safe && metric(result, "objective") > metric(*best, "objective"))) {
      best = &result;
    }
  }
  return best;
}

std::string verdict(const Comparison& comparison) {
  const PolicyResult& best = *best_policy(comparison);
  std::string text = fmt::format("Best: {}", best.label);
  if (const double ooms = metric(best, "ooms"); ooms > 0) {
    text += fmt::format(", though {:.0f} of its steps ran out of memory (no policy had none)", ooms);
  }
  const PolicyResult* oracle = comparison.find("oracle");
  if (oracle == nullptr) return text + ". No fixed choice is safe here, so there is no regret.";
  const double regret = metric(best, "regret");
  return text + fmt::format(", {} {} the best safe fixed choice {}.", percent(std::abs(regret)),
                            regret < 0 ? "above" : "short of", point_text(oracle->run.final_point));
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

int run(const Arguments& arguments) {
  Output output{arguments};
  const std::string picture = arguments["picture"].as<std::string>();
  const std::string trace_dir = arguments["trace-dir"].as<std::string>();
  const auto files = operands(arguments);
  if (files.size() > 1 && !(picture.empty() && trace_dir.empty())) {
    throw InputError("", "--picture and --trace-dir take one scenario at a time.");
  }
  std::vector<Scenario> scenarios;  // all are read before the first runs: a late typo costs no time
  for (const std::string& file : files) scenarios.push_back(read_scenario(file));

  Json results = Json::array();
  for (const Scenario& scenario : scenarios) {
    const Comparison comparison =
        compare_policies(scenario, split_labels(arguments["policies"].as<std::string>()));
    output.line(verdict(comparison));
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
