// vramlab check: do the expectations in these scenario files hold.
#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "cli/file_names.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "lab/comparison.hpp"
#include "lab/expectations.hpp"
#include "lab/jobs_scenario.hpp"
#include "lab/result_json.hpp"
#include "lab/scenario_parts.hpp"
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

/// A scenario of any kind that was read and can be run.
struct Readied {
  std::string file;
  std::function<std::vector<CheckedExpectation>()> check;
};

template <class Any>
Readied readied(const std::string& file, Any scenario, std::vector<CheckedExpectation> (*check)(const Any&)) {
  if (scenario.expectations.empty()) throw InputError(file, "expects nothing: there is no \"expect\".");
  const auto shared = std::make_shared<const Any>(std::move(scenario));
  return {file, [shared, check] { return check(*shared); }};
}

Readied read_any(const std::string& file) {
  const ScenarioText text = read_scenario_text(file);
  if (text.kind == "jobs") {
    return readied<JobsScenario>(
        file, parse_jobs_scenario(text.text, file),
        [](const JobsScenario& scenario) { return check_jobs(scenario, compare_queues(scenario)); });
  }
  return readied<Scenario>(file, parse_scenario(text.text, file), [](const Scenario& scenario) {
    return check_expectations(scenario, compare_policies(scenario));
  });
}

/// What became of one file: its expectations, or the error that ended it.
struct CheckedFile {
  std::vector<CheckedExpectation> expectations;
  std::exception_ptr error;
};

// Results lie in the order of the files, whatever the number of threads.
std::vector<CheckedFile> check_all(const std::vector<Readied>& scenarios, unsigned threads) {
  std::vector<CheckedFile> checked(scenarios.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < scenarios.size(); i = next++) {
      try {
        checked[i].expectations = scenarios[i].check();
      } catch (...) {
        checked[i].error = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> workers;
  for (unsigned i = 1; i < std::min<std::size_t>(threads, scenarios.size()); ++i) workers.emplace_back(work);
  work();
  workers.clear();  // joins
  return checked;
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
  std::vector<Readied> scenarios;
  for (const std::string& file : scenario_files(operands(arguments))) scenarios.push_back(read_any(file));
  const auto checked = check_all(scenarios, std::max(1u, arguments["jobs"].as<unsigned>()));
  for (const CheckedFile& file : checked) {
    if (file.error) std::rethrow_exception(file.error);
  }

  std::size_t failed = 0;
  Json results = Json::array();
  for (std::size_t i = 0; i < checked.size(); ++i) {
    std::vector<CheckedExpectation> broken;
    std::copy_if(checked[i].expectations.begin(), checked[i].expectations.end(), std::back_inserter(broken),
                 [](const CheckedExpectation& one) { return !one.ok; });
    failed += broken.empty() ? 0 : 1;
    output.line(fmt::format("{} {}: {}", broken.empty() ? "ok  " : "FAIL", scenarios[i].file,
                            summary(broken.empty() ? checked[i].expectations : broken)));
    results.push_back(expectations_json(scenarios[i].file, checked[i].expectations));
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
