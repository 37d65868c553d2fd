#include "lab/scenario/file.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <system_error>

#include "lab/model/file.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "models", ignored) && fs::is_directory(folder / "scenarios", ignored);
}

void add_named_files(const Json& json, const fs::path& scenario, std::set<std::string>& files) {
  constexpr std::size_t kLongestName = 4096;  // of a path
  if (json.is_string()) {
    const auto& name = json.get_ref<const std::string&>();
    if (name.empty() || name.size() > kLongestName) return;
    if (const auto file = find_data_file(name, scenario)) files.insert(file->string());
  }
  if (!json.is_structured()) return;
  for (const Json& inside : json) add_named_files(inside, scenario, files);
}

// A list of jobs in JSON; another list names no files, and what is wrong with one its reader says.
Json list_of_jobs(const Json& scenario, const fs::path& file) {
  const Json::json_pointer place("/trace/jobs");
  if (!scenario.contains(place) || !scenario[place].is_string()) return {};
  const auto list = find_data_file(scenario[place].get<std::string>(), file);
  if (!list) return {};
  const std::string text = read_input_file(*list);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
}

}  // namespace

fs::path data_folder() {
  for (fs::path folder = our_file().parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (const fs::path installed = folder / "share" / "vramlab"; holds_data(installed)) return installed;
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

std::vector<std::string> files_named_by(const ScenarioDocument& document) {
  std::set<std::string> files;
  add_named_files(document.json, document.file, files);
  add_named_files(list_of_jobs(document.json, document.file), document.file, files);
  for (const PolicyPlugin& plugin : document.policies->plugins) files.insert(plugin.file);
  return {files.begin(), files.end()};
}

ScenarioDocument at_seed(ScenarioDocument document, std::uint64_t more) {
  if (more > 0) document.json["seed"] = document.json.value("seed", std::uint64_t{1}) + more;
  return document;
}

void FileProblems::keep(const std::string& pointer, const Problem& one) {
  const bool names_file = one.where.find(": ") != std::string::npos;  // it may begin with / as well
  if (one.where.starts_with('/') && !names_file) {
    add(one.where, one.what);
  } else if (one.where.find_first_of(":.") == std::string::npos) {  // "list.csv:3" is of another file
    add(pointer + (one.where.empty() ? "" : "/" + one.where), one.what);
  } else {
    problems_.push_back(one);
  }
}

std::filesystem::path data_file(const std::string& name, const std::filesystem::path& scenario,
                                const std::string& pointer) {
  if (const auto path = find_data_file(name, scenario)) return *path;
  throw InputError(
      pointer, "there is no file " + Json(name).dump() + " beside the scenario, here or in the data folder.");
}

std::shared_ptr<const WorkloadModel> scenario_model(const Json& model, const std::filesystem::path& scenario,
                                                    const std::string& pointer) {
  if (model.is_object()) return parse_model(model, scenario.string() + ": " + pointer);
  const auto name = model.get<std::string>();
  if (const auto path = find_data_file(name, scenario)) return load_model_file(*path);
  throw InputError(
      pointer, "there is no model file \"" + name + "\" beside the scenario, here or in the data folder.");
}

}  // namespace vramlab
