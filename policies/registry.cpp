#include "policies/registry.hpp"

#include "policies/builtins.hpp"

namespace vramlab {

// An explicit list: statics that register themselves are dropped by linkers together with their archive
// member.
const std::vector<TunerEntry>& builtin_tuners() {
  static const std::vector<TunerEntry> entries = {VRAMLAB_TUNERS(VRAMLAB_LIST_POLICY)};
  return entries;
}

const TunerEntry& find_tuner(std::string_view name, const std::string& where,
                             const std::vector<TunerEntry>& known) {
  return find_named(known, name, "no policy", where);
}

OptionMap effective_options(const TunerChoice& choice, const std::vector<TunerEntry>& known) {
  return options_with_profile(find_tuner(choice.use, place_below(choice.where, "use"), known), choice.profile,
                              choice.options, place_below(choice.where, "profile"));
}

std::unique_ptr<Tuner> make_tuner(const TunerChoice& choice, const ParameterSpace& space,
                                  const std::vector<TunerEntry>& known) {
  const OptionMap options = effective_options(choice, known);
  return find_tuner(choice.use, {}, known).make(options, space);
}

}  // namespace vramlab
