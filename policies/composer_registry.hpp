// Composers by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/composer.hpp"
#include "policies/registry.hpp"

namespace vramlab {

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

}  // namespace vramlab
