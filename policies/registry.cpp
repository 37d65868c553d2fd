#include "policies/registry.hpp"

#include "policies/builtins.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

template <class Named>
const Named* find_named(const std::vector<Named>& entries, std::string_view name) {
  for (const Named& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& entries) {
  std::vector<std::string> names;
  for (const Named& entry : entries) names.push_back(entry.name);
  return names;
}

std::string below(const std::string& where, const char* key) {
  return where.empty() ? key : where + "/" + key;
}

}  // namespace

// An explicit list: statics that register themselves are dropped by linkers together with their archive
// member.
const std::vector<TunerEntry>& builtin_tuners() {
  static const std::vector<TunerEntry> entries = {fixed_entry(), threshold_step_entry(), aimd_entry(),
                                                  dual_optimizer_entry(), predictive_entry()};
  return entries;
}

const TunerEntry& find_tuner(std::string_view name, const std::string& where) {
  if (const TunerEntry* entry = find_named(builtin_tuners(), name)) return *entry;
  throw InputError(
      where, "no policy \"" + std::string(name) + "\"." + suggest_name(name, names_of(builtin_tuners())));
}

const TunerProfile* find_profile(const TunerEntry& tuner, std::string_view name, const std::string& where) {
  if (name.empty() && tuner.profiles.empty()) return nullptr;
  const std::string_view wanted = name.empty() ? std::string_view(tuner.default_profile) : name;
  if (const TunerProfile* profile = find_named(tuner.profiles, wanted)) return profile;
  if (tuner.profiles.empty()) throw InputError(where, "the policy " + tuner.name + " has no profiles.");
  throw InputError(where, "the policy " + tuner.name + " has no profile \"" + std::string(wanted) + "\"." +
                              suggest_name(wanted, names_of(tuner.profiles)));
}

OptionMap effective_options(const TunerChoice& choice) {
  const TunerEntry& tuner = find_tuner(choice.use, below(choice.where, "use"));
  const TunerProfile* profile = find_profile(tuner, choice.profile, below(choice.where, "profile"));
  return profile == nullptr ? choice.options : overlay(profile->options, choice.options);
}

std::unique_ptr<Tuner> make_tuner(const TunerChoice& choice, const ParameterSpace& space) {
  const OptionMap options = effective_options(choice);
  return find_tuner(choice.use).make(options, space);
}

}  // namespace vramlab
