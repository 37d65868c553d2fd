// Admitters by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/admitter.hpp"
#include "policies/registry.hpp"

namespace vramlab {

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

}  // namespace vramlab
