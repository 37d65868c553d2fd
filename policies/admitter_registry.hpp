// The admitters that come with the program, found by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/admitter.hpp"
#include "policies/registry.hpp"

namespace vramlab {

/// One kind of admitter.
struct AdmitterEntry {
  std::string name;
  std::string summary;  ///< one line
  std::vector<OptionDescription> options;
  std::vector<PolicyProfile> profiles;
  std::string default_profile;  ///< taken where none is named

  /// Makes one. Throws InputError for options out of range or not known.
  std::unique_ptr<Admitter> (*make)(const OptionMap& options) = nullptr;
};

AdmitterEntry job_queue_entry();  ///< job_queue.cpp

/// All built-in admitters, in the order in which they are listed to users.
const std::vector<AdmitterEntry>& builtin_admitters();

/// The admitter called `name`. Throws InputError at `where`, with the nearest names, if there is none.
const AdmitterEntry& find_admitter(std::string_view name, const std::string& where = {});

/// The profile called `name`; an empty name means the default one. Throws InputError at `where`.
const PolicyProfile& find_profile(const AdmitterEntry& admitter, std::string_view name,
                                  const std::string& where = {});

/// Makes the admitter of `choice`, its options on top of the profile's. Throws InputError.
std::unique_ptr<Admitter> make_admitter(const TunerChoice& choice);

}  // namespace vramlab
