// The best pair within bounds whose memory is allowed: a search that asks few pairs.
#pragma once

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
/// score at one batch must only rise or only fall with the size. Where the box has many
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
    while (batch <= box_.high.batch) {
      const bool better = try_batch(batch);
      if (done_) break;
      const std::int64_t next = batch + 1 + batch / kGeometric;
      if (better) {
        around_low = before + 1;
        around_high = next - 1;
      }
      before = batch;
      batch = next;
    }
    const std::int64_t coarse = best_.batch;
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

  // Sizes by bisection, in units, for as long as one of them could be better than the best so far.
  bool try_batch(std::int64_t batch) {
    const auto pair = [&](std::int64_t units) { return WorkPair{batch, units * box_.unit}; };
    std::int64_t good = box_.low.size / box_.unit;
    if (!allowed_(pair(good))) {
      done_ = true;  // no larger batch is allowed at any size
      return false;
    }
    const bool at_smallest = try_pair(pair(good));
    std::int64_t bad = box_.high.size / box_.unit + 1;
    while (bad - good > 1) {
      if (score_(pair(bad - 1)) <= best_score_) return at_smallest;
      const std::int64_t middle = good + (bad - good) / 2;
      (allowed_(pair(middle)) ? good : bad) = middle;
    }
    return try_pair(pair(good)) || at_smallest;
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
  WorkPair best_;
  double best_score_ = 0;
  bool found_ = false;
  bool done_ = false;
};

}  // namespace vramlab
