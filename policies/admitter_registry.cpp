#include "policies/admitter_registry.hpp"

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

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

std::string below(const std::string& where, const char* key) {
  return where.empty() ? key : where + "/" + key;
}

}  // namespace

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
  const AdmitterEntry& entry = find_admitter(choice.use, below(choice.where, "use"));
  const PolicyProfile& profile = find_profile(entry, choice.profile, below(choice.where, "profile"));
  return entry.make(overlay(profile.options, choice.options));
}

}  // namespace vramlab
