// Policies by name, the same for every family: what users see of one, and the list in which it is found.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/contract/options.hpp"

namespace vramlab {

/// A named set of option values of one policy.
struct PolicyProfile {
  std::string name;
  std::string summary;  ///< one line
  OptionMap options;    ///< set below the options a user gives
};

/// A policy as a scenario names it.
struct PolicyChoice {
  std::string use;      ///< name of the policy
  std::string profile;  ///< name of a profile; empty = the default one
  OptionMap options;    ///< override the profile's
  std::string where;    ///< place of the whole, e.g. "/policies/1"; errors are at its /use and /profile
};

/// The one called `name` among `entries`. Throws InputError at `where`: "WHAT "NAME". Did you mean …".
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

/// One kind of policy of the family `Made`. `Setting` is what one is made for, besides its options.
template <class Made, class... Setting>
struct PolicyKind {
  std::string name;
  std::string summary;  ///< one line
  std::vector<Field> options{};
  std::vector<PolicyProfile> profiles{};  ///< may be empty
  std::string default_profile{};          ///< taken where none is named; empty if there are no profiles

  /// Makes one. Throws InputError for options out of range or not known, and for a setting it is not for.
  std::function<std::unique_ptr<Made>(const OptionMap& options, Setting...)> make = nullptr;

  /// The profile called `wanted`; an empty name means the default one, and null where there are no profiles.
  /// Throws InputError at `where` for any other name.
  [[nodiscard]] const PolicyProfile* find_profile(std::string_view wanted,
                                                  const std::string& where = {}) const {
    if (wanted.empty() && profiles.empty()) return nullptr;
    if (profiles.empty()) throw InputError(where, "the policy " + name + " has no profiles.");
    return &find_named(profiles, wanted.empty() ? std::string_view(default_profile) : wanted,
                       "the policy " + name + " has no profile", where);
  }
};

/// `PolicyKind::make` for a class `Policy` whose constructor takes the options of `table` and the setting.
/// The table must outlive what is returned.
template <class Policy, class Section>
auto maker(const OptionTable<Section>& table) {
  return [&table](const OptionMap& options, const auto&... setting) {
    return std::make_unique<Policy>(table.parse(options), setting...);
  };
}

/// The kinds of one family: those that come with the program, or those and what plugins add.
/// `Made::kFamily` is what users are told that a wrong name is not one of.
template <class Made, class... Setting>
struct Registry {
  using Entry = PolicyKind<Made, Setting...>;

  std::vector<Entry> entries;  ///< in the order in which they are listed to users

  void add(Entry entry) { entries.push_back(std::move(entry)); }
  [[nodiscard]] auto begin() const { return entries.begin(); }
  [[nodiscard]] auto end() const { return entries.end(); }

  /// The kind called `name`. Throws InputError at `where`, with the nearest names, if there is none.
  [[nodiscard]] const Entry& find(std::string_view name, const std::string& where = {}) const {
    return find_named(entries, name, std::string("no ") + Made::kFamily, where);
  }

  /// The kind that `choice` names. Throws InputError at the choice's /use.
  [[nodiscard]] const Entry& find(const PolicyChoice& choice) const {
    return find(choice.use, place_below(choice, "use"));
  }

  /// The profile's options with those of `choice` on top. Throws InputError for unknown names.
  [[nodiscard]] OptionMap options(const PolicyChoice& choice) const {
    const PolicyProfile* profile = find(choice).find_profile(choice.profile, place_below(choice, "profile"));
    return profile == nullptr ? choice.options : overlay(profile->options, choice.options);
  }

  /// Makes the policy of `choice`. Throws InputError.
  std::unique_ptr<Made> make(const PolicyChoice& choice, Setting... setting) const {
    return find(choice).make(options(choice), setting...);
  }

 private:
  static std::string place_below(const PolicyChoice& choice, const char* key) {
    return choice.where.empty() ? key : choice.where + "/" + key;
  }
};

}  // namespace vramlab
