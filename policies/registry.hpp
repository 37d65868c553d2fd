// The tuners that come with the program, found by name, and how one is made from options.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/option_map.hpp"
#include "policies/option_table.hpp"
#include "policies/tuner.hpp"
#include "sim/core/parameter_space.hpp"

namespace vramlab {

/// A named set of option values of one tuner.
struct TunerProfile {
  std::string name;
  std::string summary;  ///< one line
  OptionMap options;    ///< set below the options a user gives
};

using PolicyProfile = TunerProfile;  ///< the other families have profiles of the same make

/// One kind of tuner.
struct TunerEntry {
  std::string name;
  std::string summary;  ///< one line
  std::vector<OptionDescription> options;
  std::vector<TunerProfile> profiles;  ///< may be empty
  std::string default_profile;         ///< taken where none is named; empty if there are no profiles

  /// Makes one for the parameters of a workload. Throws InputError for options out of range or not known,
  /// and for a workload without the parameters the tuner moves.
  std::unique_ptr<Tuner> (*make)(const OptionMap& options, const ParameterSpace& space) = nullptr;
};

/// All built-in tuners, in the order in which they are listed to users.
const std::vector<TunerEntry>& builtin_tuners();

/// The tuner called `name`. Throws InputError at `where`, with the nearest names, if there is none.
const TunerEntry& find_tuner(std::string_view name, const std::string& where = {});

/// The profile called `name`; an empty name means the default one, and null where the tuner has no
/// profiles. Throws InputError at `where` for any other name.
const TunerProfile* find_profile(const TunerEntry& tuner, std::string_view name,
                                 const std::string& where = {});

/// A tuner as a scenario names it.
struct TunerChoice {
  std::string use;      ///< name of the tuner
  std::string profile;  ///< name of a profile; empty = the default one
  OptionMap options;    ///< override the profile's
  std::string where;    ///< place of the whole, e.g. "/policies/1"; errors are at its /use and /profile
};

/// The profile's options with those of `choice` on top. Throws InputError for unknown names.
OptionMap effective_options(const TunerChoice& choice);

/// Makes the tuner of `choice` for a workload with the parameters `space`. Throws InputError.
std::unique_ptr<Tuner> make_tuner(const TunerChoice& choice, const ParameterSpace& space);

}  // namespace vramlab
