// What scenario files of every kind have in common: where files are looked up, how faults are gathered,
// models, expectations.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "lab/json.hpp"
#include "lab/scenario/fields.hpp"
#include "lab/scenario/scenario.hpp"
#include "models/workload_model.hpp"
#include "policies/contract/options.hpp"
#include "policies/contract/policy_set.hpp"
#include "sim/memory/caching/allocator_settings.hpp"

namespace vramlab {

/// The folder with the models and scenarios that come with the program: `share/vramlab` beside an
/// installed program, else the source tree it was built in. Empty if neither is found.
std::filesystem::path data_folder();

/// The file that `name` means in `scenario`: beside the scenario, then here, then in the data folder.
/// Empty if it is in none of them.
std::optional<std::filesystem::path> find_data_file(const std::string& name,
                                                    const std::filesystem::path& scenario);

// What scenario files of every kind have in common: how their faults are gathered, the options of a policy,
// the bounds of an expectation.

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

/// `document`, whose seed was checked, with a seed that is `more` above its own.
ScenarioDocument at_seed(ScenarioDocument document, std::uint64_t more);

/// Throws InputError with everything that `fields` do not allow in the document.
void require_fields(const ScenarioDocument& document, const std::vector<Field>& fields);

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

/// Takes what every kind has from a document whose fields passed their checks: file, name, description, seed
/// and the policies known.
void read_base(const ScenarioDocument& document, Scenario& scenario, FileProblems& problems);

/// The keys of a policy's entry that are not `own_keys`, as options.
OptionMap policy_options(const Json& entry, const std::set<std::string>& own_keys, const std::string& pointer,
                         FileProblems& problems);

/// The model that a scenario names (looked up beside it, in the data folder and here) or holds in place.
/// Throws InputError at `pointer`.
std::shared_ptr<const WorkloadModel> scenario_model(const Json& model, const std::filesystem::path& scenario,
                                                    const std::string& pointer);

/// Reads the "allocator" of a scenario, if it has one.
AllocatorSettings allocator_settings(const Json& scenario, FileProblems& problems);

/// Adds a problem where the labels under `key` ("policy" or "row") and "relative_to" are not among `labels`.
void require_expected_labels(const Json& json, const std::string& key, const std::string& pointer,
                             const std::vector<std::string>& labels, FileProblems& problems);

/// Reads what bound_fields() and share_field() list.
void read_expected_bounds(const Json& json, const std::string& pointer, Expectation& expectation,
                          FileProblems& problems);

/// Reads the "expect" of a whole scenario whose expectations are all on metrics: "policy" is one of `labels`,
/// "metric" one of `metrics`. With `labels_are_complete` false a label may be that of a policy with another
/// fault, and is not looked at.
std::vector<Expectation> read_metric_expectations(const Json& scenario, const std::set<std::string>& labels,
                                                  bool labels_are_complete,
                                                  const std::vector<std::string>& metrics,
                                                  FileProblems& problems);

}  // namespace vramlab
