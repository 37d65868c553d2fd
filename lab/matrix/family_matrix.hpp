// Every policy of one family on every scenario of its kind: composers over epochs, searchers over searches,
// admitters over queues. Tuners have a matrix of their own (lab/matrix/tuner_matrix.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "lab/best.hpp"
#include "lab/scenario/file.hpp"
#include "lab/tasks.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// A policy as a column of a matrix.
struct Contestant {
  std::string label;
  std::string use;
  std::string profile;
};

/// Those of `family`: each built-in one under the names of its profiles, or its own where it has none, but
/// for `skeleton`, which is there to be copied; then those of the plugins in `known` under their names, each
/// with its default profile. With `names_both` the policy's name stands before that of one of several
/// profiles. Throws InputError if one of a plugin has a label that is taken.
template <class Family>
std::vector<Contestant> contestants_of(const Family& family, const PolicySet& known,
                                       bool names_both = false) {
  std::vector<Contestant> all;
  const auto is_taken = [&](const std::string& label) {
    return std::ranges::find(all, label, &Contestant::label) != all.end();
  };
  const auto plugin_of = [&](const std::string& name) {
    return std::ranges::find_if(known.plugins, [&](const PolicyPlugin& plugin) {
      return std::ranges::count(plugin.policies, name) > 0;
    });
  };
  for (const auto& policy : family) {
    if (plugin_of(policy.name) != known.plugins.end() || policy.name == "skeleton") continue;
    if (policy.profiles.empty()) all.push_back({policy.name, policy.name, ""});
    for (const PolicyProfile& profile : policy.profiles) {
      const bool is_alone = policy.profiles.size() == 1;
      const bool takes_both = names_both ? !is_alone : is_taken(profile.name);
      const std::string& short_label = names_both ? policy.name : profile.name;
      const std::string label = takes_both ? policy.name + ' ' + profile.name : short_label;
      all.push_back({label, policy.name, profile.name});
    }
  }
  for (const auto& policy : family) {
    const auto plugin = plugin_of(policy.name);
    if (plugin == known.plugins.end()) continue;
    if (is_taken(policy.name)) {
      throw InputError(plugin->file, "adds a policy \"" + policy.name +
                                         "\", and the matrix has a column of that name. Give it another.");
    }
    all.push_back({policy.name, policy.name, policy.default_profile});
  }
  return all;
}

/// How one policy did on one scenario.
struct FamilyCell {
  double value = 0;                     ///< of the row's metric; NaN if there is none
  std::optional<double> short_of_best;  ///< share by which it stays behind the best that finished
  double ooms = 0;                      ///< failures for lack of memory
  std::string lost;                     ///< what it did not finish; empty = it finished
  bool is_best = false;                 ///< no other has a better rank; several may have the same
};

struct FamilyRow {
  std::string scenario;
  bool context_assumed = false;   ///< what a context takes of its card was not measured
  std::vector<FamilyCell> cells;  ///< in the order of `FamilyMatrix::labels`
};

/// One policy over all rows.
struct FamilySummary {
  std::string label;
  std::optional<double> median_short;  ///< of the rows that it finished
  std::optional<double> worst_short;
  std::int64_t unfinished_rows = 0;
  std::int64_t rows_with_ooms = 0;
  double ooms = 0;
  std::int64_t best_rows = 0;
};

struct FamilyMatrix {
  std::string kind;
  std::string metric;  ///< by which a cell is short of the best: the first one of sweeps of that kind
  std::string title;   ///< of it
  bool is_count = false;
  bool ooms_count_first = true;  ///< false: failures are how policies of that kind learn
  std::vector<std::string> labels;
  std::vector<FamilyRow> rows;
};

/// Whether scenarios of `kind` have such a matrix.
bool has_family_matrix(std::string_view kind);

/// The runs of the policies of `known` on scenarios of `kind`, one task a scenario, with the keys of their
/// files (ResultKeys) or none. They refer to `scenarios` and `known`. A policy that a scenario names itself
/// keeps its options there. A task throws InputError with every problem of its file.
std::vector<Task> family_matrix_tasks(const std::string& kind, const std::vector<ScenarioDocument>& scenarios,
                                      const std::vector<std::string>& keys,
                                      const PolicySet& known = *builtin_policies());

/// What those tasks came to, one a scenario, as a matrix.
FamilyMatrix family_matrix_of(const std::string& kind, const std::vector<Json>& results,
                              const PolicySet& known = *builtin_policies());

/// Both, on up to `threads` threads. The result does not depend on them.
FamilyMatrix family_matrix(const std::string& kind, const std::vector<ScenarioDocument>& scenarios,
                           unsigned threads, const PolicySet& known = *builtin_policies());

/// One for each label.
std::vector<FamilySummary> summarise(const FamilyMatrix& matrix);

/// By unfinished rows, rows with OOM where these count first, the median of what a policy is short of the
/// best, and OOMs.
std::vector<Standing> standings_of(const FamilyMatrix& matrix, const std::vector<FamilySummary>& summaries);

}  // namespace vramlab
