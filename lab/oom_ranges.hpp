// Sizes known up to rounding, and what follows from an error message's sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "trace/oom_message.hpp"

namespace vramlab {

/// A size in bytes known to lie in [low, high]; `value` is the likeliest. May be negative as a difference.
struct SizeRange {
  std::int64_t value = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;

  friend SizeRange operator+(const SizeRange& a, const SizeRange& b) {
    return {a.value + b.value, a.low + b.low, a.high + b.high};
  }
  friend SizeRange operator-(const SizeRange& a, const SizeRange& b) {
    return {a.value - b.value, a.low - b.high, a.high - b.low};
  }
  [[nodiscard]] SizeRange at_least_zero() const {
    return {std::max<std::int64_t>(value, 0), std::max<std::int64_t>(low, 0),
            std::max<std::int64_t>(high, 0)};
  }
  [[nodiscard]] Bytes bytes() const { return static_cast<Bytes>(std::max<std::int64_t>(value, 0)); }
};

SizeRange range_of(const PrintedSize& size);

enum class Answer : std::uint8_t { no, maybe, yes };

/// Whether a > b, as far as rounding lets one say.
inline Answer exceeds(const SizeRange& a, const SizeRange& b) {
  if (a.low > b.high) return Answer::yes;
  return a.high > b.low ? Answer::maybe : Answer::no;
}

/// The sizes a diagnosis works with. `total` and `free` are needed, the rest has its neutral value.
struct OomSizes {
  SizeRange tried;
  SizeRange total;
  SizeRange free;
  std::optional<SizeRange> allowed;
  SizeRange live;         ///< allocated to tensors, without idle memory of private pools
  SizeRange idle;         ///< idle in the default pools
  SizeRange pool_idle;    ///< idle in private pools
  SizeRange reserved;     ///< live + idle + pool_idle
  SizeRange outside;      ///< in use on the card, not reserved by PyTorch here: total - free - reserved
  SizeRange own_context;  ///< of `outside`, this process's share
  SizeRange others;       ///< of `outside`, other processes' share
  bool others_listed = false;

  [[nodiscard]] SizeRange all_idle() const { return idle + pool_idle; }
};

/// Empty if the message lacks one of the figures that nothing can be said without.
std::optional<OomSizes> oom_sizes(const OomMessage& message);

/// What of the memory outside PyTorch is taken for this process's own context where the message does not say:
/// the most that was measured on an H100 with torch 2.11 (771 MiB, R10.4).
inline constexpr std::int64_t kLargestMeasuredContext = 771LL << 20;

}  // namespace vramlab
