#include "policies/searcher_registry.hpp"

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

const std::vector<SearcherEntry>& builtin_searchers() {
  static const std::vector<SearcherEntry> entries = {
      binsearch_entry(), power_entry(),      doubling_bisect_entry(), bucket_bisect_entry(),
      back_off_entry(),  linear_fit_entry(), progressive_entry(),     model_entry()};
  return entries;
}

const SearcherEntry& find_searcher(std::string_view name, const std::string& where) {
  return find_named(builtin_searchers(), name, "no searcher", where);
}

const PolicyProfile& find_profile(const SearcherEntry& searcher, std::string_view name,
                                  const std::string& where) {
  const std::string_view wanted = name.empty() ? std::string_view(searcher.default_profile) : name;
  return find_named(searcher.profiles, wanted, "the searcher " + searcher.name + " has no profile", where);
}

std::unique_ptr<Searcher> make_searcher(const TunerChoice& choice) {
  const SearcherEntry& entry = find_searcher(choice.use, below(choice.where, "use"));
  const PolicyProfile& profile = find_profile(entry, choice.profile, below(choice.where, "profile"));
  return entry.make(overlay(profile.options, choice.options));
}

}  // namespace vramlab
