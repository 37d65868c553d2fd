#include "core/records/field.hpp"

#include <array>
#include <charconv>

#include "core/units.hpp"

namespace vramlab {

std::vector<std::string> keys_of(const std::vector<Field>& fields) {
  std::vector<std::string> keys;
  keys.reserve(fields.size());
  for (const Field& field : fields) keys.push_back(field.key);
  return keys;
}

std::string shortest_text(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

std::string exact_size_text(Bytes size) {
  static constexpr std::array<const char*, 5> kUnits{"", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; size != 0 && size % 1024 == 0 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return std::to_string(size) + kUnits.at(unit);
}

std::string default_text(const Field& field) {
  if (!field.default_value) return {};
  const FieldValue& value = *field.default_value;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return shortest_text(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer == nullptr) return {};  // a list
  return field.kind == FieldKind::size ? exact_size_text(static_cast<Bytes>(*integer))
                                       : std::to_string(*integer);
}

}  // namespace vramlab
