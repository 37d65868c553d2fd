#include "plugins/guard.hpp"

#include <algorithm>

namespace vramlab {

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
