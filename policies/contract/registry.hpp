// One kind of policy as users find it by name: its options, its profiles, and how one is made.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "policies/contract/options.hpp"

namespace vramlab {

/// The entry called `name`. Throws InputError at `where`: "WHAT "NAME". Did you mean …".
template <class Named>
const Named& find_named(const std::vector<Named>& entries, std::string_view name, const std::string& what,
                        const std::string& where) {
  std::vector<std::string> names;
  for (const Named& entry : entries) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw InputError(where, what + " \"" + std::string(name) + "\"." + suggest_name(name, names));
}

/// The place of `key` in the object at `where`.
inline std::string place_below(const std::string& where, const char* key) {
  return where.empty() ? key : where + "/" + key;
}

// One kind of policy as users find it: its options, its profiles, and how one is made.

/// A named set of option values of one policy.
struct PolicyProfile {
  std::string name;
  std::string summary;  ///< one line
  OptionMap options;    ///< set below the options a user gives
};

/// A kind of the family whose policies are `Made`. `Setting` is what one is made for, besides its options.
template <class Made, class... Setting>
struct PolicyKind {
  std::string name;
  std::string summary;  ///< one line
  std::vector<OptionDescription> options;
  std::vector<PolicyProfile> profiles;  ///< may be empty
  std::string default_profile;          ///< taken where none is named; empty if there are no profiles

  /// Makes one. Throws InputError for options out of range or not known, and for a setting it is not for.
  std::function<std::unique_ptr<Made>(const OptionMap& options, Setting...)> make = nullptr;
};

/// The profile called `name`; an empty name means the default one, and null where the kind has no profiles.
/// Throws InputError at `where` for any other name.
template <class... Types>
const PolicyProfile* find_profile(const PolicyKind<Types...>& kind, std::string_view name,
                                  const std::string& where = {}) {
  if (name.empty() && kind.profiles.empty()) return nullptr;
  if (kind.profiles.empty()) throw InputError(where, "the policy " + kind.name + " has no profiles.");
  const std::string_view wanted = name.empty() ? std::string_view(kind.default_profile) : name;
  return &find_named(kind.profiles, wanted, "the policy " + kind.name + " has no profile", where);
}

/// `given` on top of the options of that profile.
template <class... Types>
OptionMap options_with_profile(const PolicyKind<Types...>& kind, std::string_view profile,
                               const OptionMap& given, const std::string& where = {}) {
  const PolicyProfile* found = find_profile(kind, profile, where);
  return found == nullptr ? given : overlay(found->options, given);
}

}  // namespace vramlab
