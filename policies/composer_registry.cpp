#include "policies/composer_registry.hpp"

#include "policies/find_named.hpp"

namespace vramlab {

const std::vector<ComposerEntry>& builtin_composers() {
  static const std::vector<ComposerEntry> entries = {memory_aware_sampler_entry(), planned_batches_entry()};
  return entries;
}

const ComposerEntry& find_composer(std::string_view name, const std::string& where) {
  return find_named(builtin_composers(), name, "no composer of batches", where);
}

const PolicyProfile& find_profile(const ComposerEntry& composer, std::string_view name,
                                  const std::string& where) {
  const std::string_view wanted = name.empty() ? std::string_view(composer.default_profile) : name;
  return find_named(composer.profiles, wanted, "the policy " + composer.name + " has no profile", where);
}

std::unique_ptr<Composer> make_composer(const TunerChoice& choice, const std::vector<std::string>& tasks) {
  const ComposerEntry& entry = find_composer(choice.use, place_below(choice.where, "use"));
  const PolicyProfile& profile = find_profile(entry, choice.profile, place_below(choice.where, "profile"));
  return entry.make(overlay(profile.options, choice.options), tasks);
}

}  // namespace vramlab
