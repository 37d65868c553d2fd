// The composers that come with the program, found by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/composer.hpp"
#include "policies/registry.hpp"

namespace vramlab {

/// One kind of composer.
struct ComposerEntry {
  std::string name;
  std::string summary;  ///< one line
  std::vector<OptionDescription> options;
  std::vector<PolicyProfile> profiles;
  std::string default_profile;  ///< taken where none is named

  /// Makes one for a data set whose tasks have these names, by number; with the guardian around it where its
  /// options ask for one. Throws InputError for options out of range or not known.
  std::unique_ptr<Composer> (*make)(const OptionMap& options,
                                    const std::vector<std::string>& tasks) = nullptr;
};

ComposerEntry memory_aware_sampler_entry();  ///< memory_aware_sampler.cpp
ComposerEntry planned_batches_entry();       ///< planned_batches.cpp

/// All built-in composers, in the order in which they are listed to users.
const std::vector<ComposerEntry>& builtin_composers();

/// The composer called `name`. Throws InputError at `where`, with the nearest names, if there is none.
const ComposerEntry& find_composer(std::string_view name, const std::string& where = {});

/// The profile called `name`; an empty name means the default one. Throws InputError at `where`.
const PolicyProfile& find_profile(const ComposerEntry& composer, std::string_view name,
                                  const std::string& where = {});

/// Makes the composer of `choice`, its options on top of the profile's. Throws InputError.
std::unique_ptr<Composer> make_composer(const TunerChoice& choice, const std::vector<std::string>& tasks);

}  // namespace vramlab
