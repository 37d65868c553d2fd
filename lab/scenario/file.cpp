#include "lab/scenario/file.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>

#include "lab/model/file.hpp"
#include "lab/scenario/fields.hpp"
#include "lab/scenario/policies.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "models", ignored) && fs::is_directory(folder / "scenarios", ignored);
}

}  // namespace

fs::path data_folder() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path installed = program.parent_path().parent_path() / "share" / "vramlab";
  if (holds_data(installed)) return installed;
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (holds_data(folder)) return folder;
  }
  return {};
}

std::optional<fs::path> find_data_file(const std::string& name, const fs::path& scenario) {
  const std::array<fs::path, 3> places{scenario.parent_path() / name, fs::path{name}, data_folder() / name};
  for (const fs::path& place : places) {
    std::error_code ignored;
    if (fs::is_regular_file(place, ignored)) return place;
  }
  return std::nullopt;
}

ScenarioDocument read_document(const std::filesystem::path& file, std::shared_ptr<const PolicySet> policies) {
  return parse_document(read_input_file(file), file, std::move(policies));
}

ScenarioDocument parse_document(std::string text, const std::filesystem::path& file,
                                std::shared_ptr<const PolicySet> policies) {
  ScenarioDocument document{.file = file.string(),
                            .json = parse_json(text, file.string()),
                            .kind = {},
                            .text = std::move(text),
                            .policies = std::move(policies)};
  const Json& json = document.json;
  const bool says = json.is_object() && json.contains("kind") && json["kind"].is_string();
  if (says) document.kind = json["kind"].get<std::string>();
  return document;
}

ScenarioDocument at_seed(ScenarioDocument document, std::uint64_t more) {
  if (more > 0) document.json["seed"] = document.json.value("seed", std::uint64_t{1}) + more;
  return document;
}

void require_fields(const ScenarioDocument& document, const std::vector<Field>& fields) {
  std::vector<Problem> problems;
  check_fields(document.json, fields, /*open=*/false, "", problems);
  for (Problem& problem : problems) problem.where = document.file + ": " + problem.where;
  if (!problems.empty()) throw InputError(std::move(problems));
}

void read_base(const ScenarioDocument& document, Scenario& scenario, FileProblems& problems) {
  const Json& json = document.json;
  scenario.file = document.file;
  scenario.known = with_scenario_plugins(json, document.file, document.policies, problems);
  scenario.name = json["name"].get<std::string>();
  scenario.description = json.value("description", std::string{});
  scenario.seed = json.value("seed", std::uint64_t{1});
}

void FileProblems::keep(const std::string& pointer, const Problem& one) {
  if (one.where.starts_with('/')) {
    add(one.where, one.what);
  } else if (one.where.find(':') == std::string::npos) {
    add(pointer + (one.where.empty() ? "" : "/" + one.where), one.what);
  } else {
    problems_.push_back(one);
  }
}

OptionMap policy_options(const Json& entry, const std::set<std::string>& own_keys, const std::string& pointer,
                         FileProblems& problems) {
  OptionMap options;
  for (const auto& [key, value] : entry.items()) {
    if (own_keys.contains(key)) continue;
    const std::string where = pointer + "/" + key;
    if (value.is_boolean()) {
      options.set(key, value.get<bool>(), where);
    } else if (value.is_number_integer()) {
      options.set(key, value.get<std::int64_t>(), where);
    } else if (value.is_number()) {
      options.set(key, value.get<double>(), where);
    } else if (value.is_string()) {
      options.set(key, value.get<std::string>(), where);
    } else {
      problems.add(where, "an option is a number, true or false, or text in quotes.");
    }
  }
  return options;
}

std::shared_ptr<const WorkloadModel> scenario_model(const Json& model, const std::filesystem::path& scenario,
                                                    const std::string& pointer) {
  if (model.is_object()) return parse_model(model, scenario.string() + ": " + pointer);
  const auto name = model.get<std::string>();
  if (const auto path = find_data_file(name, scenario)) return load_model_file(*path);
  throw InputError(
      pointer, "there is no model file \"" + name + "\" beside the scenario, here or in the data folder.");
}

AllocatorSettings allocator_settings(const Json& scenario, FileProblems& problems) {
  AllocatorSettings settings;
  if (!scenario.contains("allocator")) return settings;
  const Json& allocator = scenario["allocator"];
  const auto read = [&](const char* key, const auto& take) {
    if (!allocator.contains(key)) return;
    try {
      take(allocator[key].get<std::string>());
    } catch (const InputError& error) {
      for (const Problem& one : error.problems()) {
        problems.add(std::string("/allocator/") + key,
                     one.where.empty() ? one.what : one.where + ": " + one.what);
      }
    }
  };
  read("torch_version", [&](const std::string& text) { settings.torch = parse_torch_version(text); });
  read("conf", [&](const std::string& text) { settings = parse_allocator_settings(text, settings); });
  return settings;
}

void read_expected_bounds(const Json& json, const std::string& pointer, Expectation& expectation,
                          FileProblems& problems) {
  const auto bound = [&](const char* key) {
    return json.contains(key) ? std::optional{bound_value(json[key])} : std::nullopt;
  };
  expectation.min = bound("min");
  expectation.max = bound("max");
  expectation.equals = bound("equals");
  expectation.tolerance = json.value("tolerance", 0.0);
  expectation.relative_to = json.value("relative_to", std::string{});
  expectation.share = json.value("share", 1.0);
  if (!expectation.min && !expectation.max && !expectation.equals) {
    problems.add(pointer, "nothing is expected: give \"min\", \"max\" or \"equals\".");
  }
  if (json.contains("tolerance") && !expectation.equals) {
    problems.add(pointer + "/tolerance", "goes with \"equals\", which is not given.");
  }
  if (expectation.min && expectation.max && *expectation.min > *expectation.max) {
    problems.add(pointer, "\"min\" is above \"max\": nothing can hold.");
  }
}

void require_expected_labels(const Json& json, const std::string& key, const std::string& pointer,
                             const std::vector<std::string>& labels, FileProblems& problems) {
  for (const std::string& name : {key, std::string{"relative_to"}}) {
    if (!json.contains(name)) continue;
    const auto label = json[name].get<std::string>();
    if (std::find(labels.begin(), labels.end(), label) != labels.end()) continue;
    problems.add(pointer + "/" + name,
                 "no " + key + " is labelled \"" + label + "\"." + suggest_name(label, labels));
  }
}

std::vector<Expectation> read_metric_expectations(const Json& scenario, const std::set<std::string>& labels,
                                                  bool labels_are_complete,
                                                  const std::vector<std::string>& metrics,
                                                  FileProblems& problems) {
  std::vector<Expectation> expectations;
  const Json list = scenario.value("expect", Json::array());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& json = list[i];
    const std::string pointer = "/expect/" + std::to_string(i);
    Expectation expectation{.policy = json["policy"].get<std::string>(),
                            .name = json["metric"].get<std::string>()};
    if (labels_are_complete) {
      require_expected_labels(json, "policy", pointer, {labels.begin(), labels.end()}, problems);
    }
    if (std::find(metrics.begin(), metrics.end(), expectation.name) == metrics.end()) {
      problems.add(pointer + "/metric",
                   "\"" + expectation.name + "\" is no metric." + suggest_name(expectation.name, metrics));
    }
    read_expected_bounds(json, pointer, expectation, problems);
    if (json.contains("share") && !scenario.contains("seeds")) {
      problems.add(pointer + "/share", "goes with the scenario's \"seeds\", which is not given.");
    }
    expectations.push_back(std::move(expectation));
  }
  return expectations;
}

}  // namespace vramlab
