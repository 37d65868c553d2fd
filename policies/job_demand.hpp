// What a job asks of a card, as a law over its batch size, and how a smaller batch keeps the effective one.
#pragma once

#include <compare>
#include <cstdint>

#include "sim/core/units.hpp"

namespace vramlab {

/// Which cards a job may run on: bit i stands for pool i of a `CardIndex`.
using PoolMask = std::uint64_t;
inline constexpr PoolMask kAnyPool = ~PoolMask{0};

/// A declared need of memory on each of `cards` cards of one node.
///
/// It is `fixed` + `per_sample` · batch bytes, or, where `share_milli` is not 0, that many thousandths of
/// whichever card the job is placed on (K4-09: what is promised and enforced is bytes either way).
struct JobDemand {
  Bytes fixed = 0;
  Bytes per_sample = 0;
  std::int64_t least_batch = 1;  ///< smaller batches need as much as this one
  std::int64_t share_milli = 0;  ///< 1 to 1000; 0 = the demand is in bytes
  std::int64_t batch = 1;        ///< asked for; at least 1
  std::int64_t effective = 1;  ///< samples an optimizer step is to see, whatever the batch; at least `batch`
  std::int32_t cards = 1;      ///< at least 1
  std::int32_t priority = 0;   ///< higher goes first
  std::uint32_t account = 0;   ///< whose quota it counts against
  PoolMask pools = kAnyPool;

  /// Bytes on each card at `with_batch`, on a card that offers `card_total`.
  [[nodiscard]] Bytes need(std::int64_t with_batch, Bytes card_total) const;

  /// True if a smaller batch needs less.
  [[nodiscard]] bool shrinks() const { return share_milli == 0 && per_sample > 0 && batch > least_batch; }

  friend auto operator<=>(const JobDemand&, const JobDemand&) = default;
};

/// A micro-batch and how many of them make one optimizer step.
struct BatchSplit {
  std::int64_t batch = 1;
  std::int64_t accumulation = 1;

  [[nodiscard]] std::int64_t effective() const { return batch * accumulation; }
  friend bool operator==(const BatchSplit&, const BatchSplit&) = default;
};

/// The split of `original` that runs at most `batch` samples at once and keeps original = batch ·
/// accumulation: the largest divisor that is not above `batch` (K4-01: 30 at most 7 is 6 · 5).
BatchSplit exact_split(std::int64_t original, std::int64_t batch);

/// The original's: original // batch steps of `batch`. The effective batch may come out smaller (30 at 7 is
/// 7 · 4 = 28).
BatchSplit halved_split(std::int64_t original, std::int64_t batch);

/// Halves `demand.batch` (integer division) until the need is at most `available` on a card that offers
/// `card_total` (P3.4). 0 if not even batch 1 fits.
std::int64_t halve_until_fits(const JobDemand& demand, Bytes available, Bytes card_total);

}  // namespace vramlab
