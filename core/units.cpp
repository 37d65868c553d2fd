#include "core/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace vramlab {
namespace {

constexpr std::array<std::pair<std::string_view, Bytes>, 5> kUnits{
    {{"B", 1}, {"KiB", 1_KiB}, {"MiB", 1_MiB}, {"GiB", 1_GiB}, {"TiB", 1024 * 1_GiB}}};
constexpr double kLargest = 1152921504606846976.0;  // 2^60: far above any card, far below overflow

}  // namespace

std::optional<Bytes> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty()) unit = "B";
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double bytes = std::round(number * static_cast<double>(factor));
    if (bytes > kLargest || (factor == 1 && bytes != number)) return std::nullopt;
    return static_cast<Bytes>(bytes);
  }
  return std::nullopt;
}

std::string format_bytes(Bytes size) {
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && size >= kUnits[unit + 1].second) ++unit;
  const auto& [name, factor] = kUnits[unit];
  const double amount = static_cast<double>(size) / static_cast<double>(factor);
  std::array<char, 32> text{};  // to_chars, because printf writes the comma of a host's locale
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), amount,
                                          std::chars_format::fixed, unit == 0 ? 0 : 1);
  return std::string(text.data(), end) + ' ' + std::string{name};
}

SimTime from_seconds(double seconds) {
  constexpr double kMost = 9.2e9;  // what 64 bits of nanoseconds can hold
  return SimTime{std::llround(std::clamp(seconds, -kMost, kMost) * 1e9)};
}

}  // namespace vramlab
