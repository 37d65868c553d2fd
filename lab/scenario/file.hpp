// A scenario file as it is read: parsed once, its faults gathered, the files that it names looked up.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "lab/json.hpp"
#include "models/workload_model.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// The shared library that this code is part of, else the program. Empty if the system does not say.
std::filesystem::path our_file();

/// The folder with the models and scenarios that come with the program, or with the shared library that this
/// is part of: `share/vramlab` in one of the folders above it, else the source tree it was built in. Empty if
/// neither is found.
std::filesystem::path data_folder();

/// The file that `name` means in `scenario`: beside the scenario, then here, then in the data folder.
/// Empty if it is in none of them.
std::optional<std::filesystem::path> find_data_file(const std::string& name,
                                                    const std::filesystem::path& scenario);

/// A scenario file, parsed and not yet understood. A pipe can be read once only.
struct ScenarioDocument {
  std::string file;
  Json json;
  std::string kind;  ///< as it says: "training", "jobs"; empty if it says none
  std::string text;  ///< as it stands in the file; empty for what was made from another document
  std::shared_ptr<const PolicySet> policies =
      builtin_policies();  ///< that it may name, besides those of its own plugins
};

/// Throws InputError if the file cannot be read or is not JSON.
ScenarioDocument read_document(const std::filesystem::path& file,
                               std::shared_ptr<const PolicySet> policies = builtin_policies());

/// The same from text; `file` names it in messages and is where the files that it names are looked up.
ScenarioDocument parse_document(std::string text, const std::filesystem::path& file,
                                std::shared_ptr<const PolicySet> policies = builtin_policies());

/// Every file that a text of `document` names, as find_data_file finds it, and that of a list of jobs, which
/// may name models; and the plugins of its policies. What is not a file's name seldom is one by chance.
std::vector<std::string> files_named_by(const ScenarioDocument& document);

/// `document`, whose seed was checked, with a seed that is `more` above its own.
ScenarioDocument at_seed(ScenarioDocument document, std::uint64_t more);

/// The faults of one file, gathered so that they are reported together.
class FileProblems {
 public:
  explicit FileProblems(const std::filesystem::path& file) : file_(file.string()) {}

  void add(const std::string& pointer, const std::string& what) {
    problems_.push_back({file_ + ": " + pointer, what});
  }

  /// Does `work`, and keeps the problems of an InputError. A place that begins with / is one of this file;
  /// what a policy or a model says of itself gets `pointer` in front; places in other files stay.
  template <class Work>
  void guarded(const std::string& pointer, const Work& work) {
    try {
      work();
    } catch (const InputError& error) {
      for (const Problem& one : error.problems()) keep(pointer, one);
    }
  }

  /// Throws InputError if there are any.
  void throw_if_any() const {
    if (!problems_.empty()) throw InputError(problems_);
  }

 private:
  void keep(const std::string& pointer, const Problem& one);

  std::string file_;
  std::vector<Problem> problems_;
};

/// The file that a key at `pointer` names, looked up as find_data_file does. Throws InputError.
std::filesystem::path data_file(const std::string& name, const std::filesystem::path& scenario,
                                const std::string& pointer);

/// The model that a scenario names (looked up as above) or holds in place. Throws InputError at `pointer`.
std::shared_ptr<const WorkloadModel> scenario_model(const Json& model, const std::filesystem::path& scenario,
                                                    const std::string& pointer);

}  // namespace vramlab
