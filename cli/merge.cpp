// vramlab merge: the parts of a sweep that was made on several machines, as one.
#include <filesystem>

#include <fmt/format.h>

#include "cli/compare/sweep.hpp"
#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/scenario/sweep.hpp"

namespace vramlab {
namespace {

void add_merge_options(Options& options) {
  options.add_options()("results", text_value("FILE"),
                        "where all go, .jsonl or .csv; what it has already stays")(
      "metric", text_value("NAME"), "the metric to show");
  add_labels_option(options);
  add_plugin_option(options);
  add_report_option(options);
  add_output_options(options);
}

int run_merge(const Arguments& arguments, Output& output) {
  const auto files = operands(arguments);
  const std::vector<std::string> parts{files.begin() + 1, files.end()};
  require_output_names(files,
                       {text_of(arguments, "json"), text_of(arguments, "results"), output.report_file()});
  if (text_of(arguments, "results").empty()) {
    throw InputError("--results", "is missing: the file, .jsonl or .csv, where all runs go.");
  }
  for (const std::string& part : parts) {
    if (!std::filesystem::exists(part)) throw InputError(part, "does not exist.");
  }
  const ScenarioDocument scenario = output.scenario(files.front(), chosen_policies(arguments, output));
  if (!has_sweep(scenario)) throw InputError(scenario.file, "is not a sweep: there is no \"sweep\".");
  const auto [result, missing] = merge_sweep(scenario, parts, arguments, output);
  output.write_report();
  output.json(result);
  if (missing == 0) return kDone;
  output.line(fmt::format("{} runs are in none of the files.", missing));
  return kExpectationFailed;
}

}  // namespace

Verb merge_verb() {
  return {.name = "merge",
          .summary = "the parts of a sweep that compare --shard made, as one",
          .operands = "SCENARIO PART...",
          .count = {2, 100001},
          .example = "vramlab merge sweep.json part-1.jsonl part-2.jsonl --results all.jsonl",
          .add_options = add_merge_options,
          .run = run_merge};
}

}  // namespace vramlab
