// Options of policies: values as a file gave them, and the table that declares them once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/records/record.hpp"

namespace vramlab {

/// A value as written in a JSON or YAML file.
using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

/// "true", "100", "0.85" (the shortest text that reads back equal), or the text itself.
std::string format_option_value(const OptionValue& value);

/// One key and its value.
struct OptionEntry {
  std::string key;
  OptionValue value;
  std::string where{};  ///< e.g. "/policies/1/target_vram_usage" or "train.yml:12"; may be empty

  friend bool operator==(const OptionEntry&, const OptionEntry&) = default;
};

/// Keys and values in the order in which they were set; every key at most once.
class OptionMap {
 public:
  OptionMap() = default;
  OptionMap(std::initializer_list<OptionEntry> entries);

  /// Sets `key`, replacing its value and place if it is there already.
  void set(std::string key, OptionValue value, std::string where = {});

  /// The entry of `key`, or null.
  [[nodiscard]] const OptionEntry* find(std::string_view key) const;

  [[nodiscard]] const std::vector<OptionEntry>& entries() const { return entries_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }

  friend bool operator==(const OptionMap&, const OptionMap&) = default;

 private:
  std::vector<OptionEntry> entries_;
};

/// `base` with every entry of `over` set on top of it.
OptionMap overlay(const OptionMap& base, const OptionMap& over);

/// What an option may be, in words: "0.01 to 1", "peak, allocated", "true or false", "any text".
std::string describe_allowed(const Field& option);

/// "boolean", "integer", "number", "text", "choice": what options may be.
std::string_view option_type_name(FieldKind type);

/// Checks `map` against `options`. Result: one value per option, empty where the map has none; integers and
/// numbers have the option's own type. Throws InputError with every fault; that of an unknown key says where
/// the keys of the policy `owner` are listed, unless that is empty.
std::vector<std::optional<OptionValue>> checked_values(const OptionMap& map,
                                                       const std::vector<Field>& options,
                                                       const std::string& owner);

/// The table of a policy's options: rows as every section of a file has them, of the kinds boolean, integer,
/// number, text and choice; integers and numbers have bounds. Defaults are those of a default-constructed
/// `Section`.
template <class Section>
struct OptionTable {
  std::string owner;  ///< the policy's name, for "vramlab policies OWNER lists all keys"; may be empty
  Record<Section> options;

  /// Rules between options (least ≤ most); adds what is wrong. Null if there are none. Only called when
  /// every option on its own is in order.
  void (*check)(const Section&, const OptionMap&, std::vector<Problem>&) = nullptr;

  /// The rows as people and documents see them, in the table's order.
  [[nodiscard]] const std::vector<Field>& describe() const { return options.fields; }

  /// A section with the values of `map`. Throws InputError with every problem found.
  [[nodiscard]] Section parse(const OptionMap& map) const;
};

/// The place of the first of `keys` that `map` has, for a problem between several options.
std::string place_of(const OptionMap& map, std::initializer_list<std::string_view> keys);

template <class Section>
Section OptionTable<Section>::parse(const OptionMap& map) const {
  const auto values = checked_values(map, options.fields, owner);
  Section section{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    const auto value = std::visit([](const auto& plain) { return FieldValue{plain}; }, *values[i]);
    options.access[i].store(&section, value);
  }
  std::vector<Problem> problems;
  if (check != nullptr) check(section, map, problems);
  if (!problems.empty()) throw InputError(std::move(problems));
  return section;
}

}  // namespace vramlab
