#include "policies/contract/policy.hpp"

#include <array>
#include <charconv>
#include <system_error>

namespace vramlab {

std::string fixed_point(double value, int decimals) {
  std::array<char, 400> text{};  // the largest double has 309 digits before its point
  const auto [end, fault] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  return fault == std::errc{} ? std::string(text.data(), end) : "?";
}

std::string signed_number(std::int64_t value) { return (value < 0 ? "" : "+") + std::to_string(value); }

}  // namespace vramlab
