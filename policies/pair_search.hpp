// The best pair within bounds whose memory is allowed: a search that asks few pairs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "policies/memory_law.hpp"

namespace vramlab {

/// Pairs from `low` to `high`, sizes in multiples of `unit`. `low.size` and `high.size` are such multiples.
struct PairBox {
  WorkPair low;
  WorkPair high;
  std::int64_t unit = 1;
};

/// The pair of `box` with the highest `score(pair)` among those that are `allowed(pair)`; empty if none is.
/// Memory grows with both parameters: what lies at or beyond a pair that is not allowed is not either. The
/// score at one batch must be highest at the smallest or at the largest allowed size. Where the box has many
/// batches they are looked at in geometric steps first, then one by one around the best.
template <class Allowed, class Score>
class PairSearch {
 public:
  PairSearch(const PairBox& box, const Allowed& allowed, const Score& score)
      : box_(box), allowed_(allowed), score_(score) {}

  std::optional<WorkPair> run() {
    if (box_.low.size == box_.high.size) {
      try_pair({largest_batch(), box_.low.size});
      return best();
    }
    std::int64_t before = box_.low.batch;
    std::int64_t batch = box_.low.batch;
    std::int64_t around_low = batch;
    std::int64_t around_high = batch;
    std::int64_t widest_around = widest_;
    while (batch <= box_.high.batch) {
      const std::int64_t widest_before = widest_;
      const bool better = try_batch(batch);
      if (done_) break;
      const std::int64_t next = batch + 1 + batch / kGeometric;
      if (better) {
        around_low = before + 1;
        around_high = next - 1;
        widest_around = widest_before;
      }
      before = batch;
      batch = next;
    }
    const std::int64_t coarse = best_.batch;
    widest_ = widest_around;
    for (std::int64_t one = around_low; one <= std::min(around_high, box_.high.batch); ++one) {
      if (one != coarse) try_batch(one);
    }
    return best();
  }

 private:
  static constexpr std::int64_t kGeometric = 8;  // steps of an eighth; below 8 every batch is looked at

  [[nodiscard]] std::optional<WorkPair> best() const { return found_ ? std::optional{best_} : std::nullopt; }

  bool try_pair(const WorkPair& pair) {
    if (pair.batch < box_.low.batch) return false;
    const double score = score_(pair);
    if (found_ && score <= best_score_) return false;
    best_ = pair;
    best_score_ = score;
    found_ = true;
    return true;
  }

  bool try_batch(std::int64_t batch) {
    if (!allowed_(WorkPair{batch, box_.low.size})) {
      done_ = true;  // no larger batch is allowed at any size
      return false;
    }
    widest_ = widest_size(batch);
    const bool at_smallest = try_pair({batch, box_.low.size});
    return try_pair({batch, widest_ * box_.unit}) || at_smallest;
  }

  // In units: downwards in doubled steps from what the batch before was allowed, for that is near, then by
  // bisection. The smallest size is allowed.
  std::int64_t widest_size(std::int64_t batch) const {
    const auto fits = [&](std::int64_t size) { return allowed_(WorkPair{batch, size * box_.unit}); };
    const std::int64_t least = box_.low.size / box_.unit;
    std::int64_t bad = widest_ + 1;
    std::int64_t good = widest_;
    for (std::int64_t step = 1; good > least && !fits(good); step *= 2) {
      bad = good;
      good = std::max(least, good - step);
    }
    while (bad - good > 1) {
      const std::int64_t middle = good + (bad - good) / 2;
      (fits(middle) ? good : bad) = middle;
    }
    return good;
  }

  std::int64_t largest_batch() {
    std::int64_t good = box_.low.batch - 1;
    std::int64_t bad = box_.high.batch + 1;
    while (bad - good > 1) {
      const std::int64_t middle = good + (bad - good) / 2;
      (allowed_(WorkPair{middle, box_.low.size}) ? good : bad) = middle;
    }
    return good;
  }

  PairBox box_;
  const Allowed& allowed_;
  const Score& score_;
  std::int64_t widest_ = std::max(box_.low.size, box_.high.size) /
                         box_.unit;  ///< allowed with the batch looked at last, in units
  WorkPair best_;
  double best_score_ = 0;
  bool found_ = false;
  bool done_ = false;
};

}  // namespace vramlab
