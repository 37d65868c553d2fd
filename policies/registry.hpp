// Tuners by name: the ones that come with the program or any others, and how one is made from options.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/policy_kind.hpp"
#include "policies/tuner.hpp"
#include "sim/core/parameter_space.hpp"

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

}  // namespace vramlab
