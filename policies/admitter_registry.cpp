#include "policies/admitter_registry.hpp"

#include "policies/find_named.hpp"

namespace vramlab {

const std::vector<AdmitterEntry>& builtin_admitters() {
  static const std::vector<AdmitterEntry> entries = {job_queue_entry()};
  return entries;
}

const AdmitterEntry& find_admitter(std::string_view name, const std::string& where) {
  return find_named(builtin_admitters(), name, "no queue policy", where);
}

const PolicyProfile& find_profile(const AdmitterEntry& admitter, std::string_view name,
                                  const std::string& where) {
  const std::string_view wanted = name.empty() ? std::string_view(admitter.default_profile) : name;
  return find_named(admitter.profiles, wanted, "the policy " + admitter.name + " has no profile", where);
}

std::unique_ptr<Admitter> make_admitter(const TunerChoice& choice) {
  const AdmitterEntry& entry = find_admitter(choice.use, place_below(choice.where, "use"));
  const PolicyProfile& profile = find_profile(entry, choice.profile, place_below(choice.where, "profile"));
  return entry.make(overlay(profile.options, choice.options));
}

}  // namespace vramlab
