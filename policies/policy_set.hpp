// The policies that a run may name: the built-in ones, or those and what plugins add.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "policies/admitter_registry.hpp"
#include "policies/composer_registry.hpp"
#include "policies/registry.hpp"
#include "policies/searcher_registry.hpp"

namespace vramlab {

/// A plugin whose policies are in a set.
struct PolicyPlugin {
  std::string file;  ///< canonical path
  std::string name;
  std::string version;
  std::vector<std::string> policies;  ///< that it added
};

/// Policies of all families. Their names are unique over all of them.
struct PolicySet {
  std::vector<TunerEntry> tuners;
  std::vector<AdmitterEntry> admitters;
  std::vector<SearcherEntry> searchers;
  std::vector<ComposerEntry> composers;
  std::vector<PolicyPlugin> plugins;  ///< who loads plugins keeps this list

  /// Calls `visit` with every entry, family by family.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& entry : tuners) visit(entry);
    for (const auto& entry : admitters) visit(entry);
    for (const auto& entry : searchers) visit(entry);
    for (const auto& entry : composers) visit(entry);
  }
};

/// The policies that come with the program. Never null.
std::shared_ptr<const PolicySet> builtin_policies();

/// The names that no further policy may have: those of the set, and that of the row that every comparison
/// adds.
std::vector<std::string> taken_names(const PolicySet& policies);

}  // namespace vramlab
