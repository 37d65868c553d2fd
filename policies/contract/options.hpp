// Options of policies: values as a file gave them, and the table that declares them once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.hpp"

namespace vramlab {

/// A value as written in a JSON or YAML file.
using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

/// "true", "100", "0.85" (the shortest text that reads back equal), or the text itself.
std::string format_option_value(const OptionValue& value);

/// One key and its value.
struct OptionEntry {
  std::string key;
  OptionValue value;
  std::string where;  ///< e.g. "/policies/1/target_vram_usage" or "train.yml:12"; may be empty

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

// A section of options declared once: from one table come parsing, range checks, help and schema.

enum class OptionType : std::uint8_t { boolean, integer, number, text, choice };

/// "boolean", "integer", "number", "text", "choice".
std::string_view option_type_name(OptionType type);

/// Everything there is to say about one option, for help, documents and a JSON schema.
struct OptionDescription {
  std::string key;
  OptionType type = OptionType::text;
  OptionValue default_value;         ///< of the section's default; a choice is its name
  std::string unit;                  ///< e.g. "iterations", "ratio of the total"; may be empty
  double low = 0;                    ///< integer and number: smallest value allowed
  double high = 0;                   ///< integer and number: largest value allowed
  std::vector<std::string> choices;  ///< choice: the names allowed
  std::string help;                  ///< one sentence
};

/// What an option may be, in words: "0.01 to 1", "peak, allocated", "true or false", "any text".
std::string describe_allowed(const OptionDescription& option);

/// One aligned block of text per option: key, default, what is allowed, unit, help. Ends with a newline.
std::string print_options(const std::vector<OptionDescription>& options);

/// Checks `map` against `options`. Result: one value per option, empty where the map has none or a bad
/// one; integers and numbers have the option's own type. Every fault is added to `problems`; `listing` ends
/// the message about an unknown key, e.g. " (vramlab policies aimd lists all keys)".
std::vector<std::optional<OptionValue>> checked_values(const OptionMap& map,
                                                       const std::vector<OptionDescription>& options,
                                                       std::string_view listing,
                                                       std::vector<Problem>& problems);

/// An enum member of `Section`; enumerators count from 0 in the order of `names`. Made by `choice_of`.
template <class Section>
struct ChoiceMember {
  std::size_t (*get)(const Section&) = nullptr;
  void (*set)(Section&, std::size_t) = nullptr;
  std::vector<std::string> names;
};

/// `choice_of<&Options::rule>({"halve", "safe-pair"})`
template <auto Member, class Section, class Enum>
ChoiceMember<Section> choice_of_member(Enum Section::*, std::vector<std::string> names) {
  return {[](const Section& section) { return static_cast<std::size_t>(section.*Member); },
          [](Section& section, std::size_t index) { section.*Member = static_cast<Enum>(index); },
          std::move(names)};
}
template <auto Member>
auto choice_of(std::vector<std::string> names) {
  return choice_of_member<Member>(Member, std::move(names));
}

/// One row of a section's table. `low` and `high` count for integers and numbers only.
template <class Section>
struct Option {
  std::string key;
  std::variant<bool Section::*, std::int64_t Section::*, double Section::*, std::string Section::*,
               ChoiceMember<Section>>
      member;
  std::string unit;
  double low = 0;
  double high = 0;
  std::string help;
};

/// The table of one section. Defaults are those of a default-constructed `Section`.
template <class Section>
struct OptionTable {
  std::string owner;  ///< the policy's name, for "vramlab policies OWNER lists all keys"; may be empty
  std::vector<Option<Section>> options;

  /// Rules between options (least ≤ most); adds what is wrong. Null if there are none. Only called when
  /// every option on its own is in order.
  void (*check)(const Section&, const OptionMap&, std::vector<Problem>&) = nullptr;

  /// The rows as descriptions, in the table's order.
  [[nodiscard]] std::vector<OptionDescription> describe() const;

  /// A section with the values of `map`. Throws InputError with every problem found.
  [[nodiscard]] Section parse(const OptionMap& map) const;
};

/// The place of the first of `keys` that `map` has, for a problem between several options.
std::string place_of(const OptionMap& map, std::initializer_list<std::string_view> keys);

// --- templates -----------------------------------------------------------------------------------------

template <class Section>
OptionDescription describe_option(const Option<Section>& option, const Section& defaults) {
  OptionDescription row{.key = option.key,
                        .type = static_cast<OptionType>(option.member.index()),
                        .default_value = {},
                        .unit = option.unit,
                        .low = option.low,
                        .high = option.high,
                        .choices = {},
                        .help = option.help};
  if (const auto* choice = std::get_if<ChoiceMember<Section>>(&option.member)) {
    row.choices = choice->names;
    row.default_value = choice->names.at(choice->get(defaults));
  } else {
    std::visit(
        [&](const auto& member) {
          if constexpr (std::is_member_object_pointer_v<std::decay_t<decltype(member)>>) {
            row.default_value = defaults.*member;
          }
        },
        option.member);
  }
  return row;
}

/// Stores a checked value: its type is the member's, a choice's name is among the names.
template <class Section>
void store_option(const Option<Section>& option, const OptionValue& value, Section& section) {
  if (const auto* choice = std::get_if<ChoiceMember<Section>>(&option.member)) {
    const auto found = std::find(choice->names.begin(), choice->names.end(), std::get<std::string>(value));
    choice->set(section, static_cast<std::size_t>(found - choice->names.begin()));
    return;
  }
  std::visit(
      [&](const auto& member) {
        if constexpr (std::is_member_object_pointer_v<std::decay_t<decltype(member)>>) {
          section.*member = std::get<std::decay_t<decltype(section.*member)>>(value);
        }
      },
      option.member);
}

template <class Section>
std::vector<OptionDescription> OptionTable<Section>::describe() const {
  const Section defaults{};
  std::vector<OptionDescription> rows;
  rows.reserve(options.size());
  for (const Option<Section>& option : options) rows.push_back(describe_option(option, defaults));
  return rows;
}

template <class Section>
Section OptionTable<Section>::parse(const OptionMap& map) const {
  std::vector<Problem> problems;
  const std::string listing = owner.empty() ? "" : " (vramlab policies " + owner + " lists all keys)";
  const auto values = checked_values(map, describe(), listing, problems);
  Section section{};
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (values[i]) store_option(options[i], *values[i], section);
  }
  if (problems.empty() && check != nullptr) check(section, map, problems);
  if (!problems.empty()) throw InputError(std::move(problems));
  return section;
}

}  // namespace vramlab
