#include "policies/contract/options.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace vramlab {
std::string format_option_value(const OptionValue& value) {
  struct Formatter {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return shortest_text(number); }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Formatter{}, value);
}

OptionMap::OptionMap(std::initializer_list<OptionEntry> entries) {
  for (const OptionEntry& entry : entries) set(entry.key, entry.value, entry.where);
}

void OptionMap::set(std::string key, OptionValue value, std::string where) {
  OptionEntry entry{std::move(key), std::move(value), std::move(where)};
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const OptionEntry& other) { return other.key == entry.key; });
  if (found == entries_.end()) {
    entries_.push_back(std::move(entry));
  } else {
    *found = std::move(entry);
  }
}

const OptionEntry* OptionMap::find(std::string_view key) const {
  for (const OptionEntry& entry : entries_) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

OptionMap overlay(const OptionMap& base, const OptionMap& over) {
  OptionMap result = base;
  for (const OptionEntry& entry : over.entries()) result.set(entry.key, entry.value, entry.where);
  return result;
}

namespace {

constexpr std::array<std::string_view, 5> kTypeNames = {"boolean", "integer", "number", "text", "choice"};

// Bounds are doubles for both kinds; an integer's should not be printed as 1e+06.
std::string format_bound(const Field& option, double bound) {
  if (option.kind == FieldKind::integer) return std::to_string(static_cast<std::int64_t>(bound));
  return format_option_value(bound);
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string quoted(const OptionValue& value) {
  const std::string text = format_option_value(value);
  return std::holds_alternative<std::string>(value) ? "\"" + text + "\"" : text;
}

std::string_view expected(FieldKind type) {
  switch (type) {
    case FieldKind::boolean:
      return "true or false is needed";
    case FieldKind::integer:
      return "a whole number is needed";
    case FieldKind::number:
      return "a number is needed";
    default:
      break;
  }
  return "text is needed";
}

// A JSON schema counts 100.0 as an integer and 1 as a number, so both are taken here too.
std::optional<OptionValue> converted(const OptionValue& value, FieldKind type) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* number = std::get_if<double>(&value);
  switch (type) {
    case FieldKind::boolean:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case FieldKind::integer:
      if (integer != nullptr) return value;
      if (number != nullptr && std::abs(*number) < 9e15 && std::trunc(*number) == *number) {
        return static_cast<std::int64_t>(*number);
      }
      break;
    case FieldKind::number:
      if (number != nullptr) return value;
      if (integer != nullptr) return static_cast<double>(*integer);
      break;
    case FieldKind::text:
    case FieldKind::choice:
      if (std::holds_alternative<std::string>(value)) return value;
      break;
    default:
      break;
  }
  return std::nullopt;
}

// Written so that a NaN is refused.
bool within(const Field& option, const OptionValue& value) {
  const double number = option.kind == FieldKind::integer ? static_cast<double>(std::get<std::int64_t>(value))
                                                          : std::get<double>(value);
  return number >= option.low && number <= option.high;
}

std::optional<std::string> fault(const Field& option, const OptionValue& given,
                                 std::optional<OptionValue>& value) {
  value = converted(given, option.kind);
  if (!value) {
    return quoted(given) + " does not fit: " + std::string(expected(option.kind)) + " (" +
           describe_allowed(option) + ").";
  }
  const bool bounded = option.kind == FieldKind::integer || option.kind == FieldKind::number;
  if (bounded && !within(option, *value)) {
    return quoted(given) + " is out of range. Allowed: " + describe_allowed(option) + ".";
  }
  if (option.kind != FieldKind::choice) return std::nullopt;
  const auto& name = std::get<std::string>(*value);
  if (std::find(option.choices.begin(), option.choices.end(), name) != option.choices.end()) {
    return std::nullopt;
  }
  return "\"" + name + "\" is none of " + describe_allowed(option) + "." +
         (nearest_name(name, option.choices).empty() ? "" : suggest_name(name, option.choices));
}

// Dozens of keys in one message help nobody, so without a near one the listing alone is named.
std::string unknown_key(const std::string& key, const std::vector<std::string>& known,
                        std::string_view listing) {
  const bool suggest = listing.empty() || !nearest_name(key, known).empty();
  return "unknown key \"" + key + "\"." + (suggest ? suggest_name(key, known) : "") + std::string(listing);
}

}  // namespace

std::string_view option_type_name(FieldKind type) { return kTypeNames.at(static_cast<std::size_t>(type)); }

std::string describe_allowed(const Field& option) {
  switch (option.kind) {
    case FieldKind::boolean:
      return "true or false";
    case FieldKind::choice:
      return join(option.choices);
    case FieldKind::text:
      return "any text";
    default:
      break;
  }
  return format_bound(option, option.low) + " to " + format_bound(option, option.high);
}

std::string print_options(const std::vector<Field>& options) {
  std::size_t key_width = 0;
  std::size_t default_width = 0;
  for (const Field& option : options) {
    key_width = std::max(key_width, option.key.size());
    default_width = std::max(default_width, default_text(option).size());
  }
  std::string text;
  for (const Field& option : options) {
    std::string line = option.key;
    line.resize(key_width + 2, ' ');
    line += default_text(option);
    line.resize(key_width + default_width + 4, ' ');
    line += option.help + " [" + describe_allowed(option) + (option.unit.empty() ? "" : "; " + option.unit);
    text += line + "]\n";
  }
  return text;
}

std::vector<std::optional<OptionValue>> checked_values(const OptionMap& map,
                                                       const std::vector<Field>& options,
                                                       std::string_view listing,
                                                       std::vector<Problem>& problems) {
  std::vector<std::optional<OptionValue>> values(options.size());
  for (const OptionEntry& entry : map.entries()) {
    const std::string where = entry.where.empty() ? entry.key : entry.where;
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const Field& candidate) { return candidate.key == entry.key; });
    if (option == options.end()) {
      problems.push_back({where, unknown_key(entry.key, keys_of(options), listing)});
      continue;
    }
    std::optional<OptionValue> value;
    if (auto text = fault(*option, entry.value, value)) {
      problems.push_back({where, *std::move(text)});
    } else {
      values[static_cast<std::size_t>(option - options.begin())] = std::move(value);
    }
  }
  return values;
}

std::string place_of(const OptionMap& map, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const OptionEntry* entry = map.find(key)) return entry->where.empty() ? entry->key : entry->where;
  }
  return keys.size() == 0 ? std::string{} : std::string(*keys.begin());
}

}  // namespace vramlab
