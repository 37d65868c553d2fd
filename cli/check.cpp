// vramlab check: do the expectations in these scenario files hold.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/output/tasks.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/scenario/expectations.hpp"
#include "lab/scenario/result_keys.hpp"
#include "report/html_page.hpp"
#include "report/output_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

void add_check_options(Options& options) {
  options.add_options()("junit", text_value("FILE"), "write the results as JUnit XML")(
      "update", po::bool_switch(),
      "put what was found in place of every \"equals\" that does not hold, and print the difference");
  add_task_options(options);
  add_plugin_option(options);
  add_output_options(options);
}

/// One file with its expectations.
struct CheckedFile {
  std::string file;
  bool context_assumed = false;
  std::vector<CheckedExpectation> expectations;
};

SeededExperiments read_with_expectations(const ScenarioDocument& document) {
  SeededExperiments scenario = read_seeds(document);
  if (scenario.front()->scenario().expectations.empty()) {
    throw InputError(document.file, "expects nothing: there is no \"expect\".");
  }
  return scenario;
}

std::size_t failures(const CheckedFile& file) {
  return static_cast<std::size_t>(std::count_if(file.expectations.begin(), file.expectations.end(),
                                                [](const CheckedExpectation& one) { return !one.ok; }));
}

// The expectations that do not hold, or all if they do, each with its figure and its bound.
void print_file(const CheckedFile& file, Output& output) {
  const bool holds = failures(file) == 0;
  std::string summary;
  for (const CheckedExpectation& one : file.expectations) {
    if (one.ok && !holds) continue;
    summary += fmt::format("{}{} {} {} ({})", summary.empty() ? "" : "; ", one.policy, one.metric,
                           format_number(one.value), one.bound);
  }
  output.line("{} {}{}: {}", holds ? "ok  " : "FAIL", file.file,
              file.context_assumed ? " (context assumed)" : "", summary);
  std::vector<std::string> last;  // several failures often have one cause: it is shown once
  for (const CheckedExpectation& one : file.expectations) {
    if (one.ok || one.around.empty() || one.around == last) continue;
    output.line("     {} {}:", one.policy, one.metric);
    for (const std::string& line : one.around) output.line("     " + line);
    last = one.around;
  }
}

Table expectations_table(const std::vector<CheckedFile>& files) {
  Table table{{left(""), left("scenario"), left("run"), left("figure"), "found", left("allowed")}};
  for (const CheckedFile& file : files) {
    for (const CheckedExpectation& one : file.expectations) {
      table.add_row(
          {one.ok ? "ok" : "FAIL", file.file, one.policy, one.metric, format_number(one.value), one.bound});
    }
  }
  return table;
}

void require_updatable(const std::vector<ScenarioDocument>& documents) {
  for (const ScenarioDocument& document : documents) {
    if (fs::path{document.file}.extension() == ".json" && fs::is_regular_file(document.file)) continue;
    throw InputError(document.file, "--update rewrites plain .json files only. Unpack it first.");
  }
}

void update(const ScenarioDocument& document, const std::vector<Expectation>& expectations,
            const CheckedFile& checked, Output& output) {
  const UpdatedText updated = updated_expectations(document.text, expectations, checked.expectations);
  if (updated.changes.empty()) return;
  write_file(document.file, updated.text);
  for (const std::string& change : updated.changes) output.line("     " + change);
  output.wrote(document.file);
}

std::string case_xml(const CheckedFile& file, const CheckedExpectation& one) {
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml_text(file.file),
                                       xml_text(one.policy + " " + one.metric + " " + one.bound));
  if (one.ok) return head + "/>\n";
  std::string around;
  for (const std::string& line : one.around) around += line + '\n';
  return fmt::format(
      "{}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n", head,
      xml_text(fmt::format("{} {} is {} ({})", one.policy, one.metric, format_number(one.value), one.bound)),
      xml_text(around));
}

// Results as JUnit XML, which build servers show: a suite a file, a case an expectation; the trace around a
// failure is its text.
std::string junit_xml(const std::vector<CheckedFile>& files) {
  std::size_t tests = 0;
  std::size_t failed = 0;
  std::string suites;
  for (const CheckedFile& file : files) {
    tests += file.expectations.size();
    failed += failures(file);
    suites += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n", xml_text(file.file),
                          file.expectations.size(), failures(file));
    for (const CheckedExpectation& one : file.expectations) suites += case_xml(file, one);
    suites += "  </testsuite>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{}\" "
      "failures=\"{}\">\n{}</testsuites>\n",
      tests, failed, suites);
}

Json expectations_json(const CheckedFile& file) {
  Json list = Json::array();
  for (const CheckedExpectation& one : file.expectations) {
    list.push_back({{"policy", one.policy},
                    {"metric", one.metric},
                    {"value", number_json(one.value)},
                    {"bound", one.bound},
                    {"ok", one.ok}});
    if (!one.around.empty()) list.back()["around"] = one.around;
  }
  return {{"file", file.file}, {"context_assumed", file.context_assumed}, {"expectations", std::move(list)}};
}

Json results_json(const std::vector<CheckedFile>& files, std::size_t failed) {
  Json list = Json::array();
  for (const CheckedFile& file : files) list.push_back(expectations_json(file));
  return {{"passed", files.size() - failed}, {"failed", failed}, {"scenarios", std::move(list)}};
}

// What a task comes to, and the way back.
Json checked_json(const std::vector<CheckedExpectation>& expectations) {
  Json list = Json::array();
  for (const CheckedExpectation& one : expectations) {
    list.push_back({{"policy", one.policy},
                    {"metric", one.metric},
                    {"value", number_json(one.value)},
                    {"bound", one.bound},
                    {"ok", one.ok},
                    {"seeds", one.seeds},
                    {"around", one.around}});
  }
  return list;
}

std::vector<CheckedExpectation> checked_from(const Json& list) {
  std::vector<CheckedExpectation> expectations;
  for (const Json& one : list) {
    const Json& value = one.at("value");
    expectations.push_back({.policy = one.at("policy").get<std::string>(),
                            .metric = one.at("metric").get<std::string>(),
                            .value = value.is_null() ? std::nan("") : value.get<double>(),
                            .bound = one.at("bound").get<std::string>(),
                            .ok = one.at("ok").get<bool>(),
                            .seeds = one.at("seeds").get<std::size_t>(),
                            .around = one.at("around").get<std::vector<std::string>>()});
  }
  return expectations;
}

/// The files of a command, read.
struct FilesToCheck {
  std::vector<ScenarioDocument> documents;
  std::vector<SeededExperiments> scenarios;
  std::vector<std::vector<Expectation>> expectations;

  /// One a file. They refer to this.
  [[nodiscard]] std::vector<Task> tasks() {
    std::vector<Task> tasks;
    ResultKeys keys{VRAMLAB_VERSION};
    for (std::size_t i = 0; i < documents.size(); ++i) {
      tasks.push_back({.name = documents[i].file,
                       .key = keys.of(documents[i], {"check"}),
                       .length = length_of(documents[i]) * static_cast<double>(scenarios[i].size()),
                       .perform = [&scenario = scenarios[i]] {
                         const SeededExperiments seeds = std::move(scenario);
                         return checked_json(check_expectations(seeds));
                       }});
    }
    return tasks;
  }
};

FilesToCheck read_files(const std::vector<std::string>& files, const Arguments& arguments, Output& output) {
  FilesToCheck read;
  const auto policies = chosen_policies(arguments, output);
  for (const std::string& file : files) read.documents.push_back(output.scenario(file, policies));
  if (arguments["update"].as<bool>()) require_updatable(read.documents);
  for (const ScenarioDocument& document : read.documents) {
    read.scenarios.push_back(read_with_expectations(document));
    read.expectations.push_back(read.scenarios.back().front()->scenario().expectations);
  }
  return read;
}

int run_check(const Arguments& arguments, Output& output) {
  const auto junit = text_of(arguments, "junit");
  const auto files = scenario_files(operands(arguments));
  require_output_names(files, {text_of(arguments, "json"), junit, text_of(arguments, "results")});
  FilesToCheck read = read_files(files, arguments, output);
  std::vector<bool> assumed;
  for (const auto& seeds : read.scenarios) assumed.push_back(seeds.front()->scenario().context_assumed);
  const TaskResults done = perform_tasks(read.tasks(), "files", arguments, output);
  if (!done.shows) return kDone;
  std::vector<CheckedFile> checked;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (done.results[i]) checked.push_back({files[i], assumed[i], checked_from(*done.results[i])});
  }

  const bool stopped = checked.size() < files.size();
  const bool lines = text_of(arguments, "format") == "text";
  if (!lines) output.table(expectations_table(checked));
  std::size_t failed = 0;
  for (std::size_t i = 0; i < checked.size(); ++i) {
    if (lines) print_file(checked[i], output);
    if (failures(checked[i]) == 0) continue;
    ++failed;
    if (stopped || !arguments["update"].as<bool>()) continue;
    update(read.documents[i], read.expectations[i], checked[i], output);
  }
  if (lines) output.line("{} passed, {} failed", checked.size() - failed, failed);
  if (stopped) return kStoppedByUser;
  if (!junit.empty()) output.write(junit, junit_xml(checked));
  output.json(results_json(checked, failed));
  return failed == 0 ? kDone : kExpectationFailed;
}

}  // namespace

Verb check_verb() {
  return {.name = "check",
          .summary = "do the expectations in these scenario files, or folders of them, hold",
          .operands = "PATH...",
          .count = {1, 1000},
          .example = "vramlab check scenarios --junit check.xml",
          .add_options = add_check_options,
          .run = run_check,
          .has_tasks = true};
}

}  // namespace vramlab
