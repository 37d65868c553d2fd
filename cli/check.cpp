// vramlab check: do the expectations in these scenario files hold.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/parallel.hpp"
#include "lab/scenario/expectations.hpp"
#include "report/html_page.hpp"
#include "report/output_file.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

void add_options(Options& options) {
  options.add_options()("junit", po::value<std::string>()->default_value("")->value_name("FILE"),
                        "write the results as JUnit XML")(
      "update", po::bool_switch(),
      "put what was found in place of every \"equals\" that does not hold, and print the difference");
  add_threads_option(options);
  add_plugin_option(options);
  add_output_options(options);
}

/// One file with its expectations.
struct CheckedFile {
  std::string file;
  std::vector<CheckedExpectation> expectations;
};

SeededExperiments read_with_expectations(const ScenarioDocument& document) {
  SeededExperiments scenario = read_seeds(document);
  if (scenario.front()->scenario().expectations.empty()) {
    throw InputError(document.file, "expects nothing: there is no \"expect\".");
  }
  return scenario;
}

// Every expectation given, with its figure and its bound.
std::string summary(const std::vector<const CheckedExpectation*>& checked) {
  std::string text;
  for (const CheckedExpectation* one : checked) {
    text += fmt::format("{}{} {} {} ({})", text.empty() ? "" : "; ", one->policy, one->metric,
                        format_number(one->value), one->bound);
  }
  return text;
}

/// Prints the lines of one file, and says whether all of its expectations hold.
bool print_file(const CheckedFile& file, Output& output) {
  std::vector<const CheckedExpectation*> all;
  std::vector<const CheckedExpectation*> broken;
  for (const CheckedExpectation& one : file.expectations) {
    all.push_back(&one);
    if (!one.ok) broken.push_back(&one);
  }
  output.line(fmt::format("{} {}: {}", broken.empty() ? "ok  " : "FAIL", file.file,
                          summary(broken.empty() ? all : broken)));
  std::vector<std::string> last;  // several failures often have one cause: it is shown once
  for (const CheckedExpectation* one : broken) {
    if (one->around.empty() || one->around == last) continue;
    output.line(fmt::format("     {} {}:", one->policy, one->metric));
    for (const std::string& line : one->around) output.line("     " + line);
    last = one->around;
  }
  return broken.empty();
}

Table expectations_table(const std::vector<CheckedFile>& files) {
  using Align = Table::Align;
  Table table{{{"", Align::left},
               {"scenario", Align::left},
               {"run", Align::left},
               {"figure", Align::left},
               {"found"},
               {"allowed", Align::left}}};
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

std::size_t failures(const CheckedFile& file) {
  return static_cast<std::size_t>(std::count_if(file.expectations.begin(), file.expectations.end(),
                                                [](const CheckedExpectation& one) { return !one.ok; }));
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

Json expectations_json(const std::string& file, const std::vector<CheckedExpectation>& checked) {
  Json json;
  json["file"] = file;
  json["expectations"] = Json::array();
  for (const CheckedExpectation& one : checked) {
    Json entry;
    entry["policy"] = one.policy;
    entry["metric"] = one.metric;
    entry["value"] = number_json(one.value);
    entry["bound"] = one.bound;
    entry["ok"] = one.ok;
    if (!one.around.empty()) entry["around"] = one.around;
    json["expectations"].push_back(std::move(entry));
  }
  return json;
}

Json results_json(const std::vector<CheckedFile>& files, std::size_t failed) {
  Json json;
  json["passed"] = files.size() - failed;
  json["failed"] = failed;
  json["scenarios"] = Json::array();
  for (const CheckedFile& file : files) {
    json["scenarios"].push_back(expectations_json(file.file, file.expectations));
  }
  return json;
}

int run(const Arguments& arguments) {
  Output output{arguments};
  const auto junit = arguments["junit"].as<std::string>();
  std::vector<ScenarioDocument> documents;
  const auto files = scenario_files(operands(arguments));
  require_output_names(files, {arguments["json"].as<std::string>(), junit});
  const auto policies = chosen_policies(arguments);
  for (const std::string& file : files) documents.push_back(read_document(file, policies));
  if (arguments["update"].as<bool>()) require_updatable(documents);
  std::vector<SeededExperiments> scenarios;
  std::vector<std::vector<Expectation>> expectations;
  for (const ScenarioDocument& document : documents) {
    scenarios.push_back(read_with_expectations(document));
    expectations.push_back(scenarios.back().front()->scenario().expectations);
  }
  std::vector<CheckedFile> checked(files.size());
  for_each_index(files.size(), chosen_threads(arguments), [&](std::size_t i) {
    checked[i] = {files[i], check_expectations(scenarios[i])};
    scenarios[i].clear();
  });

  const bool lines = arguments["format"].as<std::string>() == "text";
  if (!lines) output.table(expectations_table(checked));
  std::size_t failed = 0;
  for (std::size_t i = 0; i < checked.size(); ++i) {
    const auto& all = checked[i].expectations;
    const bool held = lines ? print_file(checked[i], output)
                            : std::all_of(all.begin(), all.end(), [](const auto& one) { return one.ok; });
    failed += held ? 0 : 1;
    if (!held && arguments["update"].as<bool>()) update(documents[i], expectations[i], checked[i], output);
  }
  if (lines) output.line(fmt::format("{} passed, {} failed", checked.size() - failed, failed));
  if (!junit.empty()) {
    write_file(junit, junit_xml(checked));
    output.wrote(junit);
  }
  output.json(results_json(checked, failed));
  return failed == 0 ? kDone : kExpectationFailed;
}

}  // namespace

Verb check_verb() {
  return {.name = "check",
          .summary = "do the expectations in these scenario files, or folders of them, hold",
          .operands = "PATH...",
          .example = "vramlab check scenarios --junit check.xml",
          .least_operands = 1,
          .most_operands = 1000,
          .add_options = add_options,
          .run = run};
}

}  // namespace vramlab
