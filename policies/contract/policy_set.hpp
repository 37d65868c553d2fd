// The four families by name, and the policies that a run may name: the built-in ones, or those and what
// plugins add.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/parameter_space.hpp"
#include "policies/contract/admitter.hpp"
#include "policies/contract/composer.hpp"
#include "policies/contract/registry.hpp"
#include "policies/contract/searcher.hpp"
#include "policies/contract/tuner.hpp"

namespace vramlab {

using TunerProfile = PolicyProfile;

/// One kind of tuner; it is made for the parameters of a workload, and refuses one without those it moves.
using TunerEntry = PolicyKind<Tuner, const ParameterSpace&>;

/// All built-in tuners, in the order in which they are listed to users.
const std::vector<TunerEntry>& builtin_tuners();

/// The tuner called `name` among `known`. Throws InputError at `where`, with the nearest names, if there is
/// none.
const TunerEntry& find_tuner(std::string_view name, const std::string& where = {},
                             const std::vector<TunerEntry>& known = builtin_tuners());

/// A policy as a scenario names it.
struct TunerChoice {
  std::string use;      ///< name of the policy
  std::string profile;  ///< name of a profile; empty = the default one
  OptionMap options;    ///< override the profile's
  std::string where;    ///< place of the whole, e.g. "/policies/1"; errors are at its /use and /profile
};

/// The profile's options with those of `choice` on top. Throws InputError for unknown names.
OptionMap effective_options(const TunerChoice& choice,
                            const std::vector<TunerEntry>& known = builtin_tuners());

/// Makes the tuner of `choice` for a workload with the parameters `space`. Throws InputError.
std::unique_ptr<Tuner> make_tuner(const TunerChoice& choice, const ParameterSpace& space,
                                  const std::vector<TunerEntry>& known = builtin_tuners());

// Composers by name.

/// One kind of composer; it is made for a data set whose tasks have these names, by number, with the guardian
/// around it where its options ask for one.
using ComposerEntry = PolicyKind<Composer, const std::vector<std::string>&>;

/// All built-in composers, in the order in which they are listed to users.
const std::vector<ComposerEntry>& builtin_composers();

/// The composer called `name` among `known`. Throws InputError at `where`, with the nearest names, if there
/// is none.
const ComposerEntry& find_composer(std::string_view name, const std::string& where = {},
                                   const std::vector<ComposerEntry>& known = builtin_composers());

/// Makes the composer of `choice`, its options on top of the profile's. Throws InputError.
std::unique_ptr<Composer> make_composer(const TunerChoice& choice, const std::vector<std::string>& tasks,
                                        const std::vector<ComposerEntry>& known = builtin_composers());

// Admitters by name.

/// One kind of admitter.
using AdmitterEntry = PolicyKind<Admitter>;

/// All built-in admitters, in the order in which they are listed to users.
const std::vector<AdmitterEntry>& builtin_admitters();

/// The admitter called `name` among `known`. Throws InputError at `where`, with the nearest names, if there
/// is none.
const AdmitterEntry& find_admitter(std::string_view name, const std::string& where = {},
                                   const std::vector<AdmitterEntry>& known = builtin_admitters());

/// Makes the admitter of `choice`, its options on top of the profile's. Throws InputError.
std::unique_ptr<Admitter> make_admitter(const TunerChoice& choice,
                                        const std::vector<AdmitterEntry>& known = builtin_admitters());

// Searchers by name.

/// One kind of searcher.
using SearcherEntry = PolicyKind<Searcher>;

/// All built-in searchers, in the order in which they are listed to users.
const std::vector<SearcherEntry>& builtin_searchers();

/// The searcher called `name` among `known`. Throws InputError at `where`, with the nearest names, if there
/// is none.
const SearcherEntry& find_searcher(std::string_view name, const std::string& where = {},
                                   const std::vector<SearcherEntry>& known = builtin_searchers());

/// Makes the searcher of `choice`, its options on top of the profile's. Throws InputError.
std::unique_ptr<Searcher> make_searcher(const TunerChoice& choice,
                                        const std::vector<SearcherEntry>& known = builtin_searchers());

// The policies that a run may name: the built-in ones, or those and what plugins add.

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
