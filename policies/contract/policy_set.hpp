// The four families by name, and the policies that a run may name: the built-in ones, or those and what
// plugins add.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/parameter_space.hpp"
#include "policies/contract/admitter.hpp"
#include "policies/contract/composer.hpp"
#include "policies/contract/registry.hpp"
#include "policies/contract/searcher.hpp"
#include "policies/contract/tuner.hpp"

namespace vramlab {

/// A tuner is made for the parameters of a workload, and refuses one without those it moves.
using Tuners = Registry<Tuner, const ParameterSpace&>;
using Admitters = Registry<Admitter>;
using Searchers = Registry<Searcher>;
/// A composer is made for a data set whose tasks have these names, by number, with the guardian around it
/// where its options ask for one.
using Composers = Registry<Composer, const std::vector<std::string>&>;

using TunerEntry = Tuners::Entry;
using AdmitterEntry = Admitters::Entry;
using SearcherEntry = Searchers::Entry;
using ComposerEntry = Composers::Entry;

/// A plugin whose policies are in a set.
struct PolicyPlugin {
  std::string file;  ///< canonical path
  std::string name;
  std::string version;
  std::vector<std::string> policies;  ///< that it added
};

/// Policies of all families. Their names are unique over all of them.
struct PolicySet {
  Tuners tuners;
  Admitters admitters;
  Searchers searchers;
  Composers composers;
  std::vector<PolicyPlugin> plugins;  ///< who loads plugins keeps this list

  /// Calls `visit` with every entry, family by family.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& entry : tuners) visit(entry);
    for (const auto& entry : admitters) visit(entry);
    for (const auto& entry : searchers) visit(entry);
    for (const auto& entry : composers) visit(entry);
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for_each([&](const auto& entry) { names.push_back(entry.name); });
    return names;
  }
};

/// The policies that come with the program. Never null.
std::shared_ptr<const PolicySet> builtin_policies();

/// The names that no further policy may have: those of the set, and that of the row that every comparison
/// adds.
std::vector<std::string> taken_names(const PolicySet& policies);

}  // namespace vramlab
