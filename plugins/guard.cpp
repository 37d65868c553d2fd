#include "plugins/guard.hpp"

#include <algorithm>

#include <malloc.h>

namespace vramlab {

Bytes allocated_on_heap() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

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

// What another thread allocates in the meantime counts, too; against the bound that is little.
void Guard::count_growth(Bytes before) {
  const Bytes after = allocated_on_heap();
  grown_ = after > before ? grown_ + (after - before) : grown_ - std::min(grown_, before - after);
  if (grown_ > kMostPolicyState) {
    fail("has grown by " + format_bytes(grown_) + " in its answers; " + format_bytes(kMostPolicyState) +
         " are the most");
  }
}

}  // namespace vramlab
