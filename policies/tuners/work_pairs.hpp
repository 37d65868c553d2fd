// The options of `predictive`, the two parameters that they let it move, and what a pair of them is worth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/parameter_space.hpp"
#include "policies/contract/options.hpp"
#include "policies/predictors/memory_law.hpp"

namespace vramlab {

/// What counts as work done, as a scenario states it.
enum class WorkGoal : std::uint8_t { pixels, pixels_per_s, samples_per_s, lq_first, lq_then_batch };

/// The goal meant: `lq_then_batch` is the former name of `pixels`.
constexpr WorkGoal meant(WorkGoal goal) { return goal == WorkGoal::lq_then_batch ? WorkGoal::pixels : goal; }

/// Up to where a prediction's upper bound may reach.
enum class BoundAt : std::uint8_t { band, target };

struct PredictiveOptions {
  double target_vram_usage = 0.85;
  double safety_margin = 0.05;
  BoundAt bound_at = BoundAt::band;
  std::int64_t adjustment_frequency = 25;
  WorkGoal objective = WorkGoal::pixels;
  std::string batch_parameter;
  std::string size_parameter;
  std::int64_t lq_granularity = 1;
  double confidence = 2;
  double least_gain = 0.01;
  double least_gain_to_turn = 0.02;
  std::int64_t most_turns = 2;
  double assumed_fragmentation = 1.08;
  std::int64_t max_adjustments = 100;
  std::int64_t oom_floor_limit = 5;
};

/// The table of these options.
const OptionTable<PredictiveOptions>& predictive_table();

// The best pair within bounds whose memory is allowed: a search that asks few pairs.

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
      return best_;
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
    if (!best_) return best_;
    const std::int64_t coarse = best_->batch;
    for (std::int64_t one = around_low; one <= std::min(around_high, box_.high.batch); ++one) {
      if (one != coarse) try_batch(one);
    }
    return best_;
  }

 private:
  static constexpr std::int64_t kGeometric = 8;  // steps of an eighth; below 8 every batch is looked at

  bool try_pair(const WorkPair& pair) {
    if (pair.batch < box_.low.batch) return false;
    const double score = score_(pair);
    if (best_ && score <= best_score_) return false;
    best_ = pair;
    best_score_ = score;
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
  std::optional<WorkPair> best_;
  double best_score_ = 0;
  bool done_ = false;
};

// The two parameters of a workload that `predictive` moves, and the work a pair of them does.

/// Which parameters of a space are the batch and the size, and where the pair may lie.
class WorkPairs {
 public:
  /// Throws InputError if the options name a parameter that `space` lacks, or one twice, or if no multiple of
  /// the granularity lies within the size's bounds.
  WorkPairs(const PredictiveOptions& options, const ParameterSpace& space);

  [[nodiscard]] const PairBox& box() const { return box_; }
  [[nodiscard]] WorkPair of(const Point& point) const;

  /// The factors of `follow` for batch and size, 0 where there is none.
  [[nodiscard]] WorkPair times(const Point& follow) const {
    return {follow[batch_], size_ ? follow[*size_] : 0};
  }

  /// The change that leads from `point` to `target`.
  [[nodiscard]] Point delta(const Point& point, const WorkPair& target) const;

  /// `pair` within the box, its size cut to the granularity.
  [[nodiscard]] WorkPair snapped(const WorkPair& pair) const;

  /// Work of a step: batch · size² for a patch (`lq`), batch · size for any other size.
  [[nodiscard]] double work(const WorkPair& pair) const;

 private:
  std::size_t batch_ = 0;
  std::optional<std::size_t> size_;
  bool is_area_ = false;
  PairBox box_;
};

/// The time of a step as base + work, learnt from steps, and with it what a pair is worth.
class WorkScore {
 public:
  WorkScore() = default;
  explicit WorkScore(WorkGoal goal) : goal_(meant(goal)) {}

  /// Learns that steps of `work` take `seconds` > 0.
  void learn(double work, double seconds);

  /// Work a step, or per second: the larger the better.
  [[nodiscard]] double of(const WorkPair& pair, double work) const;

  /// By how much `pair` is better than `other`, a share; by `lq_first` of the size, or of the batch where the
  /// sizes are equal. Below 0 if it is worse.
  [[nodiscard]] double gain(const WorkPair& pair, double work, const WorkPair& other,
                            double other_work) const;

  template <class State>
  void visit(State& state) {
    state(law_, reference_);
  }

 private:
  WorkGoal goal_ = WorkGoal::pixels;
  LeastSquares<2> law_;
  double reference_ = 0;  ///< work of the first steps; 0 = none yet
};

}  // namespace vramlab
