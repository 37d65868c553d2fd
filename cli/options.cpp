#include "cli/options.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <sys/stat.h>

#include "cli/output/output.hpp"
#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "plugins/plugin_loader.hpp"
#include "recordings/snapshot/marks.hpp"

namespace vramlab {

namespace fs = std::filesystem;

void add_plugin_option(Options& options) {
  options.add_options()(
      "plugin", po::value<std::vector<std::string>>()->composing()->default_value({}, "")->value_name("FILE"),
      "a shared library with further policies; may be given several times (docs/plugins.md)")(
      "isolate", po::bool_switch(),
      "make each run of a plugin's policy in a process of its own, and take its answers from there: what "
      "crashes, exits or never answers ends its own run only");
  options.add_options()("isolate-limit", po::value<std::int64_t>()->default_value(60)->value_name("SECONDS"),
                        "with --isolate: how long an answer may take");
}

std::shared_ptr<const PolicySet> chosen_policies(const Arguments& arguments, Output& output) {
  const char* folders = std::getenv("VRAMLAB_PLUGIN_PATH");
  const auto known = output.call() != nullptr ? output.call()->policies : builtin_policies();
  auto policies = with_plugin_path(known, folders == nullptr ? "" : folders);
  for (const auto& file : texts_of(arguments, "plugin")) {
    policies = with_plugin(policies, file);
  }
  std::vector<std::string> plugins;
  for (const PolicyPlugin& plugin : policies->plugins) plugins.push_back(plugin.file);
  output.reads(plugins);
  return policies;
}

std::optional<std::chrono::seconds> chosen_isolation(const Arguments& arguments) {
  if (!arguments.contains("isolate") || !arguments["isolate"].as<bool>()) return std::nullopt;
  constexpr std::int64_t kMost = 86400;
  const auto limit = arguments["isolate-limit"].as<std::int64_t>();
  if (limit < 1 || limit > kMost) {
    throw InputError("--isolate-limit",
                     fmt::format("{} is out of range; allowed is 1 to {} seconds.", limit, kMost));
  }
  if (text_of(arguments, "device") == "cuda") {
    throw InputError("--isolate",
                     "makes a run in two processes, and --device cuda has one card. Leave one out.");
  }
  return std::chrono::seconds{limit};
}

void add_torch_version_option(Options& options) {
  options.add_options()(
      "torch-version", text_value("VERSION"),
      "the PyTorch that wrote the snapshot, such as 2.6 (default: that of the truth file; else read "
      "off keys and fields, else 2.11)");
}

std::optional<TorchVersion> chosen_torch_version(const Arguments& arguments) {
  const std::string version = text_of(arguments, "torch-version");
  if (version.empty()) return std::nullopt;
  try {
    return parse_torch_version(version);
  } catch (const InputError& error) {
    throw InputError("--torch-version", error.problems().front().what);
  }
}

void add_labels_option(Options& options) {
  options.add_options()("policies", text_value("A,B"),
                        "labels of the policies to run (default: all of the scenario)");
}

std::vector<std::string> chosen_labels(const Arguments& arguments) {
  const std::string text = text_of(arguments, "policies");
  std::vector<std::string> labels;
  std::istringstream words{text};
  for (std::string label; std::getline(words, label, ',');) labels.push_back(label);
  if (text.ends_with(',')) labels.emplace_back();
  if (std::find(labels.begin(), labels.end(), "") != labels.end()) {
    throw InputError("",
                     "--policies \"" + text + "\" has an empty label; write A,B, or leave it out for all.");
  }
  return labels;
}

void add_threads_option(Options& options) {
  options.add_options()("jobs,j", po::value<std::int64_t>()->default_value(0, "all cores")->value_name("N"),
                        "threads; the results do not depend on it");
}

unsigned chosen_threads(const Arguments& arguments) {
  constexpr std::int64_t kMost = 1024;
  const auto threads = arguments["jobs"].as<std::int64_t>();
  if (threads < 0 || threads > kMost) {
    throw InputError(
        "--jobs", fmt::format("{} is out of range; allowed is 1 to {}, or 0 for all cores.", threads, kMost));
  }
  if (chosen_isolation(arguments)) return 1;  // its runs take two processes, which threads would not survive
  return threads != 0 ? static_cast<unsigned>(threads) : std::max(1U, std::thread::hardware_concurrency());
}

void add_grouping_options(Options& options, const char* folded) {
  options.add_options()(
      "by", po::value<std::string>()->default_value("frame")->value_name("WHAT"),
      "group memory by frame (the program's innermost line), file, module or stack; whatif shows all but "
      "frame as a tree")(
      "depth", po::value<std::int64_t>()->value_name("N"),
      "of --by: that many lines, files or modules must agree, from the innermost on (default 1; of stack "
      "all); of a tree so many levels (default all)")("folded", text_value("FILE"), folded);
}

Grouping chosen_grouping(const Arguments& arguments) {
  const auto name = arguments["by"].as<std::string>();
  const auto known = std::find(kGroupNames.begin(), kGroupNames.end(), name);
  std::vector<Problem> problems;
  if (known == kGroupNames.end()) {
    problems.push_back({"--by", '"' + name + "\" is not known. Choose frame, file, module or stack."});
  }
  const bool deep = arguments.count("depth") > 0;
  const std::int64_t depth = deep ? arguments["depth"].as<std::int64_t>() : 0;
  if (deep && depth < 1) {
    problems.push_back({"--depth", fmt::format("{} is out of range; allowed is 1 and more.", depth)});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return {.by = static_cast<GroupBy>(known - kGroupNames.begin()),
          .depth = static_cast<std::size_t>(depth),
          .folded = !text_of(arguments, "folded").empty()};
}

namespace {

constexpr const char* kInputOptions[] = {"plugin", "marks",  "times",      "against",
                                         "oom",    "faults", "calibration"};
constexpr const char* kOutputOptions[] = {"json",  "report", "picture", "trace",  "export",
                                          "junit", "folded", "results", "output", "profile"};

fs::path canonical(const std::string& name) {
  std::error_code ignored;
  return fs::weakly_canonical(name, ignored);
}

// The value of an option, whether it may be repeated or not.
void add_names(const Arguments& arguments, const char* option, std::vector<std::string>& names) {
  if (!arguments.contains(option)) return;
  const boost::any& value = arguments[option].value();
  if (const auto* one = boost::any_cast<std::string>(&value)) names.push_back(*one);
  if (const auto* all = boost::any_cast<std::vector<std::string>>(&value))
    names.insert(names.end(), all->begin(), all->end());
}

using FileId = std::pair<dev_t, ino_t>;

// Of a regular file, whatever name it is called by: a device may be read and written.
std::optional<FileId> id_of(const std::string& name) {
  struct stat file {};
  if (::stat(name.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
  return FileId{file.st_dev, file.st_ino};
}

std::set<FileId> ids_of(const std::vector<std::string>& names) {
  std::set<FileId> ids;
  for (const std::string& name : names) {
    if (const auto id = id_of(name)) ids.insert(*id);
  }
  return ids;
}

// What is there by the names that a run gives its files: NAME.csv, NAME.jobs.csv, or the folder NAME.
std::vector<std::string> files_named_after(const fs::path& base) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(base.parent_path(), ignored)) {
    if (entry.path().filename().string().starts_with(base.filename().string() + ".")) {
      files.push_back(entry.path().string());
    }
  }
  for (const auto& entry : fs::directory_iterator(base, ignored)) files.push_back(entry.path().string());
  return files;
}

constexpr const char* kReadToo = "is read and would be overwritten; name another file.";

}  // namespace

std::vector<std::string> input_names(const Arguments& arguments) {
  std::vector<std::string> names = operands(arguments);
  for (const char* option : kInputOptions) add_names(arguments, option, names);
  return names;
}

std::vector<std::string> output_names(const Arguments& arguments) {
  std::vector<std::string> names;
  for (const char* option : kOutputOptions) add_names(arguments, option, names);
  std::erase_if(names, [](const std::string& name) { return name.empty() || name == "-"; });
  return names;
}

void require_kept(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  if (outputs.empty()) return;
  const auto read = ids_of(inputs);
  for (const std::string& output : outputs) {
    const auto id = id_of(output);
    if (id && read.contains(*id)) throw InputError(output, kReadToo);
  }
}

void require_kept(const std::vector<std::string>& inputs, const std::vector<std::string>& labels,
                  const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return;
  for (const auto& [label, base] : file_bases(labels, folder)) require_kept(inputs, files_named_after(base));
}

std::vector<std::string> with_siblings(const std::vector<std::string>& snapshots) {
  std::vector<std::string> files = snapshots;
  for (const std::string& snapshot : snapshots) {
    for (const auto& sibling : {find_truth_file(snapshot), find_beside(snapshot, ".marks.json")}) {
      if (sibling) files.push_back(sibling->string());
    }
  }
  return files;
}

void require_output_names(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  require_kept(inputs, outputs);
  std::set<fs::path> written;
  for (const std::string& output : outputs) {
    if (output.empty() || output == "-") continue;
    const fs::path folder = fs::path{output}.parent_path();
    std::error_code ignored;
    if (!folder.empty() && !fs::is_directory(folder, ignored)) {
      throw InputError(output, "cannot be written: there is no folder " + folder.string() + ".");
    }
    if (!written.insert(canonical(output)).second)
      throw InputError(output, "is named twice for different outputs.");
  }
}

std::vector<std::string> scenario_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      const bool is_named_so =
          entry.path().extension() == ".json" && entry.path().filename() != "schema.json";
      if (is_named_so && !entry.is_directory(ignored)) inside.push_back(entry.path().string());
    }
    if (inside.empty()) throw InputError(path, "holds no scenario files (*.json).");
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

}  // namespace vramlab
