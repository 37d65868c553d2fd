// Values of JSON files that are read key by key, without a table of fields: as they stand, or not at all.
#pragma once

#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/records/field.hpp"

namespace vramlab {

/// Throws InputError without a place: what was found, and what is needed.
template <class Json>
[[noreturn]] void wrong_json(const Json& json, const std::string& needed) {
  constexpr std::size_t kLongest = 60;
  const std::string found = json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  throw InputError("", "found " + found.substr(0, kLongest) + ", needed is " + needed + '.');
}

/// Whether `json` is a whole number that a `T` can hold.
template <class T, class Json>
bool is_whole(const Json& json) {
  if (json.is_number_unsigned()) return std::in_range<T>(json.template get<std::uint64_t>());
  return json.is_number_integer() && std::in_range<T>(json.template get<std::int64_t>());
}

template <class T>
struct ListOf : std::false_type {};
template <class T>
struct ListOf<std::vector<T>> : std::true_type {};

/// The value of `json` as a `T`: a truth, a number, a text, or a list of them. Nothing is converted, cut off
/// or wrapped round, as the library itself would. Throws InputError as wrong_json does.
template <class T, class Json>
T exact(const Json& json) {
  if constexpr (ListOf<T>::value) {
    if (!json.is_array()) wrong_json(json, "a list in [ ]");
    T list;
    for (const Json& one : json) list.push_back(exact<typename T::value_type>(one));
    return list;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) wrong_json(json, "true or false");
    return json.template get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (is_whole<T>(json)) return json.template get<T>();
    wrong_json(json, "a whole number from " + std::to_string(Limits::min()) + " to " +
                         std::to_string(Limits::max()));
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!json.is_number()) wrong_json(json, "a number");
    return json.template get<T>();
  } else {
    if (!json.is_string()) wrong_json(json, "a text in quotes");
    return json.template get<T>();
  }
}

/// The same for a number, of which only `low` to `high` is allowed.
template <class T, class Json>
T exact(const Json& json, T low, T high) {
  const T value = exact<T>(json);
  if (value >= low && value <= high) return value;
  if constexpr (std::is_integral_v<T>) {
    wrong_json(json, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  } else {
    wrong_json(json, "a number from " + shortest_text(low) + " to " + shortest_text(high));
  }
}

}  // namespace vramlab
