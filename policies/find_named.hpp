// Looking up entries and profiles by name, with the nearest right names where there is none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.hpp"

namespace vramlab {

/// The entry called `name`. Throws InputError at `where`: "WHAT "NAME". Did you mean …".
template <class Named>
const Named& find_named(const std::vector<Named>& entries, std::string_view name, const std::string& what,
                        const std::string& where) {
  std::vector<std::string> names;
  for (const Named& entry : entries) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw InputError(where, what + " \"" + std::string(name) + "\"." + suggest_name(name, names));
}

/// The place of `key` in the object at `where`.
inline std::string place_below(const std::string& where, const char* key) {
  return where.empty() ? key : where + "/" + key;
}

}  // namespace vramlab
