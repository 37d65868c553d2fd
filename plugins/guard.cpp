#include "plugins/guard.hpp"

#include <algorithm>

namespace vramlab {

void Guard::fail(const std::string& what) {
  fault_ = "the policy " + policy_ + " of a plugin " + what;
  throw PolicyFault(*fault_);
}

void Guard::require_short(const std::string& reason, const std::vector<std::string>& log) {
  if (reason.size() > kLongestReason) {
    fail("gave a reason of " + std::to_string(reason.size()) + " bytes; " + std::to_string(kLongestReason) +
         " are the most");
  }
  if (log.size() > kMostLogLines) {
    fail("logged " + std::to_string(log.size()) + " lines in one answer; " + std::to_string(kMostLogLines) +
         " are the most");
  }
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
