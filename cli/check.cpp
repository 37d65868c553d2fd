// vramlab check: do the expectations in these scenario files hold.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "cli/file_names.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "lab/parallel.hpp"
#include "lab/result_json.hpp"
#include "lab/scenario_kinds.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

void add_options(Options& options) {
  options.add_options()("jobs,j", po::value<unsigned>()->default_value(1)->value_name("N"),
                        "scenarios to run at the same time");
  add_output_options(options);
}

// A folder stands for the scenario files in it, in the order of their names.
std::vector<std::string> scenario_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".json" && entry.path().filename() != "schema.json") {
        inside.push_back(entry.path().string());
      }
    }
    if (inside.empty()) throw InputError(path, "holds no scenario files (*.json).");
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

ReadyScenario read_any(const std::string& file) {
  ReadyScenario scenario = ready_scenario(read_scenario_text(file));
  if (scenario.expectations.empty()) throw InputError(file, "expects nothing: there is no \"expect\".");
  return scenario;
}

// Every expectation given, with its figure and its bound.
std::string summary(const std::vector<CheckedExpectation>& checked) {
  std::string text;
  for (const CheckedExpectation& one : checked) {
    text += fmt::format("{}{} {} {} ({})", text.empty() ? "" : "; ", one.policy, one.metric,
                        format_number(one.value), one.bound);
  }
  return text;
}

int run(const Arguments& arguments) {
  Output output{arguments};
  require_output_names(operands(arguments), {arguments["json"].as<std::string>()});
  const auto files = scenario_files(operands(arguments));
  std::vector<ReadyScenario> scenarios;
  for (const std::string& file : files) scenarios.push_back(read_any(file));
  std::vector<std::vector<CheckedExpectation>> checked(files.size());
  for_each_index(files.size(), arguments["jobs"].as<unsigned>(),
                 [&](std::size_t i) { checked[i] = check_scenario(scenarios[i]); });

  std::size_t failed = 0;
  Json results = Json::array();
  for (std::size_t i = 0; i < checked.size(); ++i) {
    std::vector<CheckedExpectation> broken;
    std::copy_if(checked[i].begin(), checked[i].end(), std::back_inserter(broken),
                 [](const CheckedExpectation& one) { return !one.ok; });
    failed += broken.empty() ? 0 : 1;
    output.line(fmt::format("{} {}: {}", broken.empty() ? "ok  " : "FAIL", files[i],
                            summary(broken.empty() ? checked[i] : broken)));
    results.push_back(expectations_json(files[i], checked[i]));
  }
  output.line(fmt::format("{} passed, {} failed", checked.size() - failed, failed));
  Json json;
  json["passed"] = checked.size() - failed;
  json["failed"] = failed;
  json["scenarios"] = std::move(results);
  output.json(json);
  return failed == 0 ? kDone : kExpectationFailed;
}

}  // namespace

Verb check_verb() {
  return {.name = "check",
          .summary = "do the expectations in these scenario files, or folders of them, hold",
          .operands = "PATH...",
          .example = "vramlab check scenarios -j 2",
          .least_operands = 1,
          .most_operands = 1000,
          .add_options = add_options,
          .run = run};
}

}  // namespace vramlab
