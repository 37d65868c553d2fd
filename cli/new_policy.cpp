// vramlab new-policy: a small project with a policy of one's own, made of the skeleton.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/matrix/tuner_matrix.hpp"
#include "lab/scenario/file.hpp"
#include "policies/contract/policy_set.hpp"
#include "recordings/input_file.hpp"
#include "report/output_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

void add_new_policy_options(Options& options) {
  options.add_options()("family", po::value<std::string>()->default_value("tuner")->value_name("FAMILY"),
                        "what it decides; so far tuner only")("output,o", text_value("DIR"),
                                                              "the folder to make (default: NAME)");
  add_output_options(options);
}

void require_name(const std::string& name) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  const bool fits = !name.empty() && std::all_of(name.begin(), name.end(), good) && name.front() >= 'a' &&
                    name.back() != '-' && name.find("--") == std::string::npos;
  if (!fits) {
    throw InputError(
        "", fmt::format("\"{}\" is not a name for a policy. Allowed: small letters, digits and single "
                        "hyphens between them, a letter first, such as my-policy.",
                        name));
  }
  std::vector<std::string> taken = taken_names(*builtin_policies());
  const std::vector<std::string> columns = matrix_labels();  // `vramlab matrix` shows the policy beside these
  taken.insert(taken.end(), columns.begin(), columns.end());
  if (std::find(taken.begin(), taken.end(), name) != taken.end()) {
    throw InputError("", fmt::format("there is a policy \"{}\". Choose another name.", name));
  }
}

void require_family(const std::string& family) {
  if (family == "tuner") return;
  static const std::vector<std::string> others{"admitter", "composer", "searcher"};
  if (std::find(others.begin(), others.end(), family) != others.end()) {
    throw InputError("",
                     fmt::format("new-policy writes tuners only. docs/plugins.md says how a plugin adds one "
                                 "of the family {}.",
                                 family));
  }
  throw InputError("", fmt::format("\"{}\" is not a family that new-policy writes. Known: tuner.", family));
}

// my-rule: my_rule, MyRulePolicy. The ending keeps it apart from the classes of the headers.
std::string identifier(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
std::string type_name(const std::string& name) {
  std::string type;
  bool upper = true;
  for (const char c : name) {
    if (c != '-') type += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '-';
  }
  return type + "Policy";
}

using Replacements = std::vector<std::pair<std::string, std::string>>;

// In one pass: what was put in is not looked at again. Of several that fit, the first is taken.
std::string replaced(const std::string& text, const Replacements& replacements) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto fits = [&](const auto& one) { return text.compare(at, one.first.size(), one.first) == 0; };
    const auto found = std::find_if(replacements.begin(), replacements.end(), fits);
    const bool any = found != replacements.end();
    result += any ? found->second : text.substr(at, 1);
    at += any ? found->first.size() : 1;
  }
  return result;
}

std::string data_text(const char* file) {
  const fs::path folder = data_folder();
  if (folder.empty()) {
    throw InputError("", "the data folder of the program was not found; the skeleton lies in it.");
  }
  return read_input_file(folder / file);
}

// The skeleton under another name, and what makes a plugin of it.
std::string source_text(const std::string& name) {
  const std::string text =
      replaced(data_text("policies/tuners/skeleton.cpp"),
               {{"// The policy to copy: docs/plugins.md.\n", ""},
                {"#include \"policies/", "#include \"plugins/plugin.hpp\"\n#include \"policies/"},
                {"; to be copied", ""},
                {"skeleton_entry", identifier(name) + "_entry"},
                {"Skeleton", type_name(name)},
                {"skeleton", name}});
  return text + fmt::format(
                    "\nnamespace {{\n\nvoid add(vramlab::PolicySet& policies) {{ "
                    "policies.tuners.add(vramlab::{}_entry()); }}\n\n}}  // namespace\n\n"
                    "VRAMLAB_PLUGIN(\"{}\", \"0.1.0\", add)\n",
                    identifier(name), name);
}

using ProjectFiles = std::vector<std::pair<std::string, std::string>>;  // name and text

// The outermost folder of a path that is not there yet.
fs::path first_missing(const fs::path& folder) {
  fs::path missing = folder;
  while (missing.has_parent_path() && !fs::exists(missing.parent_path())) missing = missing.parent_path();
  return missing;
}

// All of it or nothing: half a project would stand in the way of the next try.
void write_project(const fs::path& folder, const ProjectFiles& files) {
  const fs::path made = first_missing(folder);
  try {
    fs::create_directories(folder);
    for (const auto& [file, text] : files) write_file(folder / file, text);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(made, ignored);
    throw;
  }
}

int run_new_policy(const Arguments& arguments, Output& output) {
  const std::string name = operands(arguments).front();
  require_family(text_of(arguments, "family"));
  require_name(name);
  const auto asked = text_of(arguments, "output");
  const fs::path folder = asked.empty() ? fs::path{name} : fs::path{asked};
  if (fs::exists(folder)) {
    throw InputError(folder.string(), "is there already. Name another folder with --output.");
  }
  const Replacements names{
      {"@NAME@", name}, {"@IDENTIFIER@", identifier(name)}, {"@VERSION@", VRAMLAB_VERSION}};
  const ProjectFiles files{
      {"CMakeLists.txt", replaced(data_text("policies/template/CMakeLists.txt.in"), names)},
      {name + ".cpp", source_text(name)},
      {name + "_test.cpp", replaced(data_text("policies/template/test.cpp.in"), names)},
      {"scenario.json", replaced(data_text("policies/template/scenario.json.in"), names)}};
  write_project(folder, files);
  Json json = Json::array();
  for (const auto& [file, text] : files) {
    output.wrote((folder / file).string());
    json.push_back((folder / file).string());
  }
  output.line(
      "\nBuild and test it, then compare it:\n"
      "  cmake -B {0}/build {0} && cmake --build {0}/build && ctest --test-dir {0}/build\n"
      "  vramlab compare {0}/scenario.json --plugin {0}/build/{1}.so",
      folder.string(), name);
  output.json({{"files", json}});
  return kDone;
}

}  // namespace

Verb new_policy_verb() {
  return {.name = "new-policy",
          .summary = "a small project with a policy of one's own, to be loaded with --plugin",
          .operands = "NAME",
          .count = {1, 1},
          .example = "vramlab new-policy my-policy --family tuner",
          .add_options = add_new_policy_options,
          .run = run_new_policy};
}

}  // namespace vramlab
