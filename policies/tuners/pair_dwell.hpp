// Tells a leak from everything else by what is allocated between steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "policies/predictors/memory_law.hpp"

namespace vramlab {

/// Watches memory allocated between steps at unchanged parameters. A leak rises again and again and never
/// falls; optimizer state rises once, an outlier not at all.
class LeakWatch {
 public:
  /// Takes what is allocated after step `iteration`, a share of the total.
  void add(double allocated, std::int64_t iteration) {
    const bool calm = rises_ > 0 && since_rise_ >= kCalm;
    if (readings_ == 0) {
      restart();
    } else if (allocated < last_ || calm) {
      restart();
      rate_ = 0;
    } else if (allocated > last_) {
      since_rise_ = 0;
      if (++rises_ == 1) {  // the rate counts from the first rise on, whenever that came
        first_ = allocated;
        first_iteration_ = iteration;
      }
    } else {
      ++since_rise_;
    }
    ++readings_;
    last_ = allocated;
    if (rises_ >= kRises) {
      rate_ = (allocated - first_) / static_cast<double>(iteration - first_iteration_);
    } else if (readings_ > kCalm) {
      rate_ = 0;
    }
  }

  /// Other parameters may leave more or less between steps: what was found stays until seen otherwise.
  void restart() {
    readings_ = 0;
    rises_ = 0;
    since_rise_ = 0;
  }

  /// Share of the total lost each step; 0 = no leak.
  [[nodiscard]] double rate() const { return rate_; }
  [[nodiscard]] std::int64_t rises() const { return rises_; }

  template <class State>
  void visit(State& state) {
    state(last_, first_, rate_, first_iteration_, readings_, rises_, since_rise_);
  }

 private:
  static constexpr std::int64_t kRises = 4;  ///< this many make a leak
  static constexpr std::int64_t kCalm = 16;  ///< this many readings without one end it

  double last_ = 0;
  double first_ = 0;
  double rate_ = 0;
  std::int64_t first_iteration_ = 0;
  std::int64_t readings_ = 0;
  std::int64_t rises_ = 0;
  std::int64_t since_rise_ = 0;
};

// The readings of one pair while a run stays there: when they are steady, and what does not belong to them.

/// What a reading was, next to those before it at the same pair.
enum class ReadingKind : std::uint8_t {
  settling,  ///< not steady yet: a first step, buffers that grow
  steady,
  suspect,  ///< off the steady ones; the next reading tells what it was
  outlier,  ///< this reading is steady again: the one before stood alone
  shift     ///< this reading is off as the one before: a new level, to settle anew
};

/// One stay at one pair. Values are what a step takes above what is there between steps, as a share of the
/// total.
class PairDwell {
 public:
  PairDwell() = default;
  explicit PairDwell(const WorkPair& pair) : pair_(pair) {}

  /// Takes the next reading. Readings are steady once `kSteady` in a row lie within the tolerance of each
  /// other and their mean is known well, or after `patience` readings in any case: then their spread is
  /// noise, and the tolerance follows it.
  ReadingKind add(double value, std::int64_t patience) {
    if (++readings_ == 1) first_ = value;
    if (!is_steady_) return settle(value, patience);
    if (near(value, mean_)) {
      count(value);
      last_ = value;
      const bool stood_alone = is_suspect_;
      is_suspect_ = false;
      return stood_alone ? ReadingKind::outlier : ReadingKind::steady;
    }
    if (is_suspect_ && near(value, suspect_)) {
      is_steady_ = false;
      is_suspect_ = false;
      begin(suspect_);
      count(value);
      last_ = value;
      return ReadingKind::shift;
    }
    is_suspect_ = true;
    suspect_ = value;
    return ReadingKind::suspect;
  }

  [[nodiscard]] const WorkPair& pair() const { return pair_; }
  [[nodiscard]] std::int64_t readings() const { return readings_; }
  [[nodiscard]] bool is_steady() const { return is_steady_; }
  [[nodiscard]] bool is_suspect() const { return is_suspect_; }  ///< the last reading was off
  [[nodiscard]] double first() const { return first_; }          ///< of the first reading
  [[nodiscard]] double steady() const { return mean_; }          ///< mean of the steady ones
  [[nodiscard]] double stray() const { return suspect_; }        ///< the last reading that was off

  /// Standard deviation of the steady ones, a share of their mean.
  [[nodiscard]] double noise() const {
    if (counted_ < 2 || mean_ <= 0) return 0;
    return std::sqrt(squares_ / static_cast<double>(counted_ - 1)) / mean_;
  }

  /// That of their mean.
  [[nodiscard]] double error() const {
    return counted_ == 0 ? 0 : noise() / std::sqrt(static_cast<double>(counted_));
  }

  template <class State>
  void visit(State& state) {
    state(pair_, readings_, is_steady_, is_suspect_, first_, last_, mean_, squares_, counted_, suspect_);
  }

 private:
  static constexpr std::int64_t kSteady = 3;
  static constexpr double kTolerance = 0.01;   // of a reading; blocks and small tensors make less than that
  static constexpr double kWellKnown = 0.002;  // error of a mean that more readings need not improve
  static constexpr double kNoises = 4;         // standard deviations within which noisy readings are alike
  static constexpr std::int64_t kMemory = 64;  // steady readings that the mean goes back: it follows slowly

  ReadingKind settle(double value, std::int64_t patience) {
    const bool alike = counted_ > 0 && near(value, last_);
    const bool gave_up = readings_ >= patience && counted_ > 0;
    if (alike || gave_up) {
      count(value);
    } else if (readings_ + kSteady > patience && readings_ > 1) {
      count(value);  // too late to begin anew: what comes now is taken as it is
    } else {
      begin(value);
    }
    last_ = value;
    is_steady_ = (counted_ >= kSteady && error() <= kWellKnown) || gave_up;
    return is_steady_ ? ReadingKind::steady : ReadingKind::settling;
  }

  [[nodiscard]] bool near(double value, double other) const {
    const double tolerance = is_steady_ ? std::max(kTolerance, kNoises * noise()) : kTolerance;
    return std::abs(value - other) <= tolerance * std::max(value, other);
  }

  void begin(double value) {
    mean_ = value;
    squares_ = 0;
    counted_ = 1;
  }

  // Welford's sums; from `kMemory` readings on the oldest lose their weight.
  void count(double value) {
    if (counted_ == kMemory) {
      squares_ *= static_cast<double>(kMemory - 2) / static_cast<double>(kMemory - 1);
      --counted_;
    }
    ++counted_;
    const double before = value - mean_;
    mean_ += before / static_cast<double>(counted_);
    squares_ += before * (value - mean_);
  }

  WorkPair pair_;
  std::int64_t readings_ = 0;
  bool is_steady_ = false;
  bool is_suspect_ = false;
  double first_ = 0;
  double last_ = 0;
  double mean_ = 0;  ///< of the `counted_` readings that are alike
  double squares_ = 0;
  std::int64_t counted_ = 0;
  double suspect_ = 0;
};

}  // namespace vramlab
