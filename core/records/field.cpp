#include "core/records/field.hpp"

#include <array>
#include <charconv>

#include "core/units.hpp"

namespace vramlab {
namespace {

struct DefaultText {
  FieldKind kind;
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(std::int64_t number) const {
    return kind == FieldKind::size ? exact_size_text(static_cast<Bytes>(number)) : std::to_string(number);
  }
  std::string operator()(double number) const { return shortest_text(number); }
  std::string operator()(const std::string& text) const { return text; }
  template <class List>
  std::string operator()(const List& /*list*/) const {
    return {};
  }
};

}  // namespace

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
  return field.default_value ? std::visit(DefaultText{field.kind}, *field.default_value) : std::string{};
}

}  // namespace vramlab
