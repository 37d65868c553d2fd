// The searchers that come with the program, found by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/registry.hpp"
#include "policies/searcher.hpp"

namespace vramlab {

/// One kind of searcher.
struct SearcherEntry {
  std::string name;
  std::string summary;  ///< one line
  std::vector<OptionDescription> options;
  std::vector<PolicyProfile> profiles;  ///< at least one
  std::string default_profile;          ///< taken where none is named

  /// Makes one. Throws InputError for options out of range or not known.
  std::unique_ptr<Searcher> (*make)(const OptionMap& options) = nullptr;
};

SearcherEntry binsearch_entry();        ///< doubling_search.cpp
SearcherEntry power_entry();            ///< doubling_search.cpp
SearcherEntry doubling_bisect_entry();  ///< doubling_search.cpp
SearcherEntry bucket_bisect_entry();    ///< doubling_search.cpp
SearcherEntry back_off_entry();         ///< back_off_search.cpp
SearcherEntry linear_fit_entry();       ///< linear_fit_search.cpp
SearcherEntry progressive_entry();      ///< progressive_search.cpp
SearcherEntry model_entry();            ///< model_search.cpp

/// All built-in searchers, in the order in which they are listed to users.
const std::vector<SearcherEntry>& builtin_searchers();

/// The searcher called `name`. Throws InputError at `where`, with the nearest names, if there is none.
const SearcherEntry& find_searcher(std::string_view name, const std::string& where = {});

/// The profile called `name`; an empty name means the default one. Throws InputError at `where`.
const PolicyProfile& find_profile(const SearcherEntry& searcher, std::string_view name,
                                  const std::string& where = {});

/// Makes the searcher of `choice`, its options on top of the profile's. Throws InputError.
std::unique_ptr<Searcher> make_searcher(const TunerChoice& choice);

}  // namespace vramlab
