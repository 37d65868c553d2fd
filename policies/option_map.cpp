#include "policies/option_map.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace vramlab {
namespace {

std::string shortest(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

}  // namespace

std::string format_option_value(const OptionValue& value) {
  struct Formatter {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return shortest(number); }
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

}  // namespace vramlab
