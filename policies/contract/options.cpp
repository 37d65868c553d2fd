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

struct KindWords {
  std::string_view name;
  std::string_view needed;
};

// Of each kind that options may have, in the order of FieldKind.
constexpr std::array<KindWords, 5> kKinds = {{{"boolean", "true or false is needed"},
                                              {"integer", "a whole number is needed"},
                                              {"number", "a number is needed"},
                                              {"text", "text is needed"},
                                              {"choice", "text is needed"}}};

const KindWords& words_of(FieldKind kind) { return kKinds.at(static_cast<std::size_t>(kind)); }

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

// A JSON schema counts 100.0 as an integer and 1 as a number, so both are taken here too.
std::optional<OptionValue> converted(const OptionValue& value, FieldKind kind) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* number = std::get_if<double>(&value);
  if (kind == FieldKind::number && integer != nullptr) return static_cast<double>(*integer);
  if (kind == FieldKind::integer && number != nullptr) {
    const bool whole = std::abs(*number) < 9e15 && std::trunc(*number) == *number;
    return whole ? std::optional<OptionValue>{static_cast<std::int64_t>(*number)} : std::nullopt;
  }
  // The types of a value are in the order of the kinds, and a choice is a text.
  const auto type = static_cast<std::size_t>(std::min(kind, FieldKind::text));
  return value.index() == type ? std::optional{value} : std::nullopt;
}

// Written so that a NaN is refused.
bool within(const Field& option, const OptionValue& value) {
  const double number = option.kind == FieldKind::integer ? static_cast<double>(std::get<std::int64_t>(value))
                                                          : std::get<double>(value);
  return number >= option.low && number <= option.high;
}

// What is wrong with the value `given`, which became `value`; empty if nothing is.
std::string fault(const Field& option, const OptionValue& given, const std::optional<OptionValue>& value) {
  const std::string allowed = describe_allowed(option);
  if (!value) {
    return quoted(given) + " does not fit: " + std::string(words_of(option.kind).needed) + " (" + allowed +
           ").";
  }
  const bool is_number = option.kind == FieldKind::integer || option.kind == FieldKind::number;
  if (is_number && option.is_bounded() && !within(option, *value))
    return quoted(given) + " is out of range. Allowed: " + allowed + ".";
  if (option.kind != FieldKind::choice) return {};
  const auto& name = std::get<std::string>(*value);
  if (std::find(option.choices.begin(), option.choices.end(), name) != option.choices.end()) return {};
  return "\"" + name + "\" is none of " + allowed + "." +
         (nearest_name(name, option.choices).empty() ? "" : suggest_name(name, option.choices));
}

// Dozens of keys in one message help nobody, so without a near one only the place of the list is named.
std::string unknown_key(const std::string& key, const std::vector<std::string>& known,
                        const std::string& owner) {
  std::string text = "unknown key \"" + key + "\".";
  if (owner.empty() || !nearest_name(key, known).empty()) text += suggest_name(key, known);
  if (owner.empty()) return text;
  if (known.empty()) return text + " (" + owner + " has no options)";
  return text + " (vramlab policies " + owner + " lists all keys)";
}

}  // namespace

std::string_view option_type_name(FieldKind type) { return words_of(type).name; }

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
  if (!option.is_bounded()) return option.kind == FieldKind::integer ? "any whole number" : "any number";
  return format_bound(option, option.low) + " to " + format_bound(option, option.high);
}

std::vector<std::optional<OptionValue>> checked_values(const OptionMap& map,
                                                       const std::vector<Field>& options,
                                                       const std::string& owner) {
  std::vector<std::optional<OptionValue>> values(options.size());
  std::vector<Problem> problems;
  for (const OptionEntry& entry : map.entries()) {
    const std::string where = entry.where.empty() ? entry.key : entry.where;
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const Field& candidate) { return candidate.key == entry.key; });
    if (option == options.end()) {
      problems.push_back({where, unknown_key(entry.key, keys_of(options), owner)});
      continue;
    }
    auto& value = values[static_cast<std::size_t>(option - options.begin())];
    value = converted(entry.value, option->kind);
    if (auto text = fault(*option, entry.value, value); !text.empty()) {
      problems.push_back({where, std::move(text)});
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return values;
}

std::string place_of(const OptionMap& map, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const OptionEntry* entry = map.find(key)) return entry->where.empty() ? entry->key : entry->where;
  }
  return keys.size() == 0 ? std::string{} : std::string(*keys.begin());
}

}  // namespace vramlab
