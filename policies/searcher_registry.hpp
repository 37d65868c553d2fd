// Searchers by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/registry.hpp"
#include "policies/searcher.hpp"

namespace vramlab {

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

}  // namespace vramlab
