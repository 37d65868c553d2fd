// A section of options declared once: from one table come parsing, range checks, help and schema.
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

#include "policies/option_map.hpp"
#include "sim/core/error.hpp"

namespace vramlab {

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
