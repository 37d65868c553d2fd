// The "policies" and the "plugins" of a scenario.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "lab/scenario/file.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// The policies that could be read, and the labels that expectations may name.
struct PolicyList {
  std::vector<PolicyEntry> entries;
  std::set<std::string> labels;
  bool complete = true;  ///< false: one had a fault, and its label may be named all the same
};

/// What a family does with an entry. Both may throw InputError, which is reported with the file's other
/// problems.
struct PolicyFamily {
  /// Looks up the policy and the profile that the choice names at `where`, puts the profile's full name in,
  /// and returns the label of an entry that has none of its own.
  std::function<std::string(TunerChoice& choice)> find;
  /// Makes the policy, to see whether its options are right.
  std::function<void(const TunerChoice& choice)> try_out;
};

/// The full name of the profile that `choice` means; empty where the kind has no profiles. Throws InputError.
template <class... Types>
std::string full_profile_name(const PolicyKind<Types...>& kind, const TunerChoice& choice) {
  const PolicyProfile* profile = find_profile(kind, choice.profile, choice.where + "/profile");
  return profile == nullptr ? std::string{} : profile->name;
}

/// What is wrong with a label, in a sentence; empty if nothing is, and then it is `taken` from now on.
std::string label_fault(const std::string& label, std::set<std::string>& taken);

/// Reads the list. Problems, those of options included, go to `problems`.
PolicyList read_policy_list(const Json& policies, const PolicyFamily& family, FileProblems& problems);

// The plugins that a scenario names.

/// `known` and the policies of the "plugins" of a scenario, which are looked up beside it. A plugin that
/// cannot be loaded is a problem of the file, and adds nothing.
std::shared_ptr<const PolicySet> with_scenario_plugins(const Json& scenario,
                                                       const std::filesystem::path& file,
                                                       std::shared_ptr<const PolicySet> known,
                                                       FileProblems& problems);

}  // namespace vramlab
