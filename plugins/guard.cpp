#include "plugins/guard.hpp"

#include <algorithm>
#include <string_view>

namespace vramlab {
namespace {

// The shortest code point of so many bytes; a longer form of a smaller one is none (RFC 3629).
constexpr std::uint32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};

// Reasons go into JSON, which is UTF-8.
bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<std::uint8_t>(text[at++]);
    const std::size_t more = first < 0x80 ? 0 : first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    if ((first >= 0x80 && first < 0xC0) || first > 0xF4 || more > text.size() - at) return false;
    std::uint32_t point = more == 0 ? first : first & (0x3FU >> more);
    for (std::size_t i = 0; i < more; ++i) {
      const auto next = static_cast<std::uint8_t>(text[at++]);
      if (next >> 6 != 2) return false;
      point = point << 6 | (next & 0x3FU);
    }
    if (point < kSmallest[more] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
  }
  return true;
}

}  // namespace

void Guard::fail(const std::string& what) {
  fault_ = "the policy " + policy_ + " of a plugin " + what;
  throw PolicyFault(*fault_);
}

void Guard::require_at_most(std::size_t most, const char* did, std::size_t found, const char* unit) {
  if (found <= most) return;
  fail(std::string(did) + " " + std::to_string(found) + " " + unit + "; " + std::to_string(most) +
       " are the most");
}

void Guard::require_short(const std::string& reason, const std::vector<std::string>& log) {
  require_at_most(kLongestReason, "gave a reason of", reason.size(), "bytes");
  if (!is_utf8(reason)) fail("gave a reason that is not UTF-8");
  require_at_most(kMostLogLines, "logged", log.size(), "lines in one answer");
  for (const std::string& line : log) require_short(line);
}

void Guard::count_growth(std::int64_t bytes) {
  grown_ = static_cast<Bytes>(std::max<std::int64_t>(0, static_cast<std::int64_t>(grown_) + bytes));
  if (grown_ > kMostPolicyState) {
    fail("has grown by " + format_bytes(grown_) + " in its answers; " + format_bytes(kMostPolicyState) +
         " are the most");
  }
}

}  // namespace vramlab
