#include "policies/admitter_registry.hpp"

#include "policies/builtins.hpp"

namespace vramlab {

const std::vector<AdmitterEntry>& builtin_admitters() {
  static const std::vector<AdmitterEntry> entries = {VRAMLAB_ADMITTERS(VRAMLAB_LIST_POLICY)};
  return entries;
}

const AdmitterEntry& find_admitter(std::string_view name, const std::string& where,
                                   const std::vector<AdmitterEntry>& known) {
  return find_named(known, name, "no queue policy", where);
}

std::unique_ptr<Admitter> make_admitter(const TunerChoice& choice, const std::vector<AdmitterEntry>& known) {
  const AdmitterEntry& kind = find_admitter(choice.use, place_below(choice.where, "use"), known);
  return kind.make(
      options_with_profile(kind, choice.profile, choice.options, place_below(choice.where, "profile")));
}

}  // namespace vramlab
