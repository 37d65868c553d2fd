#include "policies/composer_registry.hpp"

#include "policies/builtins.hpp"

namespace vramlab {

const std::vector<ComposerEntry>& builtin_composers() {
  static const std::vector<ComposerEntry> entries = {VRAMLAB_COMPOSERS(VRAMLAB_LIST_POLICY)};
  return entries;
}

const ComposerEntry& find_composer(std::string_view name, const std::string& where,
                                   const std::vector<ComposerEntry>& known) {
  return find_named(known, name, "no composer of batches", where);
}

std::unique_ptr<Composer> make_composer(const TunerChoice& choice, const std::vector<std::string>& tasks,
                                        const std::vector<ComposerEntry>& known) {
  const ComposerEntry& kind = find_composer(choice.use, place_below(choice.where, "use"), known);
  return kind.make(
      options_with_profile(kind, choice.profile, choice.options, place_below(choice.where, "profile")),
      tasks);
}

}  // namespace vramlab
