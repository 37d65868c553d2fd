#include "policies/searcher_registry.hpp"

#include "policies/builtins.hpp"

namespace vramlab {

const std::vector<SearcherEntry>& builtin_searchers() {
  static const std::vector<SearcherEntry> entries = {VRAMLAB_SEARCHERS(VRAMLAB_LIST_POLICY)};
  return entries;
}

const SearcherEntry& find_searcher(std::string_view name, const std::string& where,
                                   const std::vector<SearcherEntry>& known) {
  return find_named(known, name, "no searcher", where);
}

std::unique_ptr<Searcher> make_searcher(const TunerChoice& choice, const std::vector<SearcherEntry>& known) {
  const SearcherEntry& kind = find_searcher(choice.use, place_below(choice.where, "use"), known);
  return kind.make(
      options_with_profile(kind, choice.profile, choice.options, place_below(choice.where, "profile")));
}

}  // namespace vramlab
