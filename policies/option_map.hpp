// Option values as a file gave them: an ordered list of key and value, each with its place for error
// messages.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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

}  // namespace vramlab
