#include "policies/tuners/pair_dwell.hpp"

#include <algorithm>
#include <cmath>

namespace vramlab {
namespace {

constexpr double kTolerance = 0.01;   // of a reading; blocks and small tensors make less than that
constexpr double kWellKnown = 0.002;  // error of a mean that more readings need not improve
constexpr double kNoises = 4;         // standard deviations within which a noisy reading is like the others
constexpr std::int64_t kMemory = 64;  // steady readings that the mean goes back, so that it follows slowly

}  // namespace

ReadingKind PairDwell::add(double value, std::int64_t patience) {
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

ReadingKind PairDwell::settle(double value, std::int64_t patience) {
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

double PairDwell::noise() const {
  if (counted_ < 2 || mean_ <= 0) return 0;
  return std::sqrt(squares_ / static_cast<double>(counted_ - 1)) / mean_;
}

double PairDwell::error() const {
  return counted_ == 0 ? 0 : noise() / std::sqrt(static_cast<double>(counted_));
}

bool PairDwell::near(double value, double other) const {
  const double tolerance = is_steady_ ? std::max(kTolerance, kNoises * noise()) : kTolerance;
  return std::abs(value - other) <= tolerance * std::max(value, other);
}

void PairDwell::begin(double value) {
  mean_ = value;
  squares_ = 0;
  counted_ = 1;
}

// Welford's sums; from `kMemory` readings on the oldest lose their weight.
void PairDwell::count(double value) {
  if (counted_ == kMemory) {
    squares_ *= static_cast<double>(kMemory - 2) / static_cast<double>(kMemory - 1);
    --counted_;
  }
  ++counted_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(counted_);
  squares_ += before * (value - mean_);
}

}  // namespace vramlab
