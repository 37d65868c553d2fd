// The "policies" and the "plugins" of a scenario.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/records/record.hpp"
#include "lab/json.hpp"
#include "lab/scenario/file.hpp"
#include "policies/contract/options.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// A search for the batch that a training run starts at.
struct StartSearch {
  PolicyChoice choice;  ///< of a searcher
  std::int64_t low = 1;
  std::int64_t high = 1;
};

/// One policy of a scenario.
struct PolicyEntry {
  std::string label;  ///< unique within the scenario
  PolicyChoice choice;
  CardsRule cards = CardsRule::fullest;  ///< what it sees of several cards
  std::optional<StartSearch> search{};   ///< that comes before its run
};

/// The same as a file has it.
struct PolicySection {
  std::string use;
  std::optional<std::string> profile;
  std::optional<std::string> label;
  const Json* json = nullptr;  ///< all of it, with the options of the policy; null if no file has it
};

/// The rows of "use", "profile" and "label".
std::vector<Row<PolicySection>> policy_rows();

/// An entry of "policies" in kinds where a policy has nothing more.
const Record<PolicySection>& policy_table();

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
  std::function<std::string(PolicyChoice& choice)> find;
  /// Makes the policy, to see whether its options are right.
  std::function<void(const PolicyChoice& choice)> try_out;
};

/// PolicyFamily::find of the policies of `registry`. The label is the profile, or the policy's name where it
/// has none; with `names_both` the name, and the profile behind it where there are several.
template <class Registry>
auto find_in(const Registry& registry, bool names_both = false) {
  return [&registry, names_both](PolicyChoice& choice) {
    const auto& policy = registry.find(choice.use, choice.where + "/use");
    const PolicyProfile* profile = policy.find_profile(choice.profile, choice.where + "/profile");
    choice.profile = profile == nullptr ? std::string{} : profile->name;
    if (names_both && policy.profiles.size() > 1) return policy.name + " " + choice.profile;
    return names_both || profile == nullptr ? policy.name : choice.profile;
  };
}

/// What is wrong with a label, in a sentence; empty if nothing is, and then it is `taken` from now on.
std::string label_fault(const std::string& label, std::set<std::string>& taken);

/// The keys of `entry` that `table` does not name, as options of its policy.
OptionMap policy_options(const Json& entry, const RecordBase& table, const std::string& pointer,
                         FileProblems& problems);

/// Reads the list, whose entries have the keys of `table` beside options. Problems, those of options
/// included, go to `problems`.
PolicyList read_policy_list(const std::vector<PolicySection>& policies, const PolicyFamily& family,
                            FileProblems& problems, const RecordBase& table = policy_table());

/// `known` and the policies of `plugins`, which are looked up beside the scenario `file`. A plugin that
/// cannot be loaded is a problem of the file, and adds nothing.
std::shared_ptr<const PolicySet> with_plugins(const std::vector<std::string>& plugins,
                                              const std::filesystem::path& file,
                                              std::shared_ptr<const PolicySet> known, FileProblems& problems);

}  // namespace vramlab
