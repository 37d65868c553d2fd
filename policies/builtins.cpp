#include "policies/builtins.hpp"

#include "policies/contract/policy_set.hpp"

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

std::shared_ptr<const PolicySet> builtin_policies() {
  static const auto set = std::make_shared<const PolicySet>(PolicySet{.tuners = builtin_tuners(),
                                                                      .admitters = builtin_admitters(),
                                                                      .searchers = builtin_searchers(),
                                                                      .composers = builtin_composers(),
                                                                      .plugins = {}});
  return set;
}

std::vector<std::string> taken_names(const PolicySet& policies) {
  std::vector<std::string> names{"oracle"};
  policies.for_each([&](const auto& kind) { names.push_back(kind.name); });
  return names;
}

}  // namespace vramlab
