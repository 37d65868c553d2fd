#include "policies/predictors/memory_law.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vramlab {
namespace {

// The prior: activations, batch·size², are all there is; any other term may be a quarter of it.
constexpr double kPriorShare = 0.25;

// Where one parameter grows and the other shrinks the strict bound is far away: the regression is alone, and
// has to be surer.
constexpr double kUnsheltered = 2;

constexpr double kLeastNoise = 0.001;       // readings are rounded to blocks, too
constexpr double kLeastDoublings = 0.25;    // any other shape may have other workspaces
constexpr double kShortestDoublings = 0.5;  // an error of a prediction next door is not magnified

constexpr double kHidden = 0.5;  // of the growth of the work: a reading that grew by less hides its samples

double ratio(std::int64_t a, std::int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

}  // namespace

void MemoryLaw::add(const WorkPair& pair, double value, double noise) {
  if (measured_.empty()) {
    reference_ = pair;
    LeastSquares<6>::Vector mean = LeastSquares<6>::Vector::Zero();
    mean[5] = value;
    regression_ = {mean, LeastSquares<6>::Vector::Constant(kPriorShare * value).cwiseAbs2()};
  } else if (const Bounds around = bounds(pair); around.same == nullptr) {
    // What the regression did not claim to know is not an error of the law. Nor is it one that the prior,
    // which speaks alone while one pair is known, took what stays fixed for activations.
    const double above = value - expected(features(pair), around);
    const double off = measured_.size() == 1 ? std::max(0.0, above) : std::abs(above);
    const double error = std::max(0.0, off - deviation(pair));
    const double slope = error / value / std::max(kShortestDoublings, around.doublings);
    misfit_ = std::sqrt((checks_ * misfit_ * misfit_ + slope * slope) / (checks_ + 1));
    ++checks_;
  }
  regression_.add(features(pair), value, std::max(kLeastNoise, noise) * value);
  measured_.remove_if([&](const Measured& one) { return one.pair == pair; });
  measured_.push(
      {pair, value, std::log2(static_cast<double>(pair.batch)), std::log2(static_cast<double>(pair.size))});
}

bool MemoryLaw::has_measured(const WorkPair& pair) const {
  return std::any_of(measured_.begin(), measured_.end(),
                     [&](const Measured& one) { return one.pair == pair; });
}

double MemoryLaw::expected(const WorkPair& pair) const { return expected(features(pair), bounds(pair)); }

double MemoryLaw::upper(const WorkPair& pair, double confidence) const {
  const Features features = this->features(pair);  // first: written long before it is read
  const Bounds around = bounds(pair);
  if (around.same != nullptr) return around.same->value;
  if (hides_growth(pair)) return std::max(around.smaller, around.high);
  const double likely = expected(features, around);
  const double doubt = around.is_sheltered ? confidence : kUnsheltered * confidence;
  const double regression = likely + doubt * regression_.deviation(features);
  const double doublings = std::max(kLeastDoublings, around.doublings);
  const double unexplained = confidence * misfit_ * doublings * likely;
  return std::max(around.smaller, std::min(around.high, regression) + unexplained);
}

// Whether `pair` lies beyond all that was measured, and the largest of these took hardly more than the
// largest below it.
bool MemoryLaw::hides_growth(const WorkPair& pair) const {
  const auto largest_below = [&](const WorkPair& most) {
    const Measured* largest = nullptr;
    for (const Measured& one : measured_) {
      if (one.pair == most || !at_or_beyond(most, one.pair)) continue;
      if (largest == nullptr || at_or_beyond(one.pair, largest->pair)) largest = &one;
    }
    return largest;
  };
  const Measured* last = largest_below(pair);
  if (last == nullptr) return false;
  const Measured* before = largest_below(last->pair);
  if (before == nullptr) return false;
  const double work = ratio(last->pair.batch, before->pair.batch) * ratio(last->pair.size, before->pair.size);
  return last->value / before->value - 1 < kHidden * (work - 1);
}

double MemoryLaw::deviation(const WorkPair& pair) const { return regression_.deviation(features(pair)); }

MemoryLaw::Features MemoryLaw::features(const WorkPair& pair) const {
  const double u = ratio(pair.batch, reference_.batch);
  const double v = ratio(pair.size, reference_.size);
  Features all;
  all << 1, u, v, u * v, v * v, u * v * v;
  return all;
}

MemoryLaw::Bounds MemoryLaw::bounds(const WorkPair& pair) const {
  Bounds around{.high = std::numeric_limits<double>::max(), .doublings = std::numeric_limits<double>::max()};
  const double log_batch = std::log2(static_cast<double>(pair.batch));
  const double log_size = std::log2(static_cast<double>(pair.size));
  for (const Measured& one : measured_) {
    const double u = ratio(pair.batch, one.pair.batch);
    const double v = ratio(pair.size, one.pair.size);
    around.high = std::min(around.high, one.value * std::max(1.0, u) * std::max(1.0, v * v));
    around.low = std::max(around.low, one.value * std::min(1.0, u) * std::min(1.0, v * v));
    if (u >= 1 && v >= 1) around.smaller = std::max(around.smaller, one.value);
    const double doublings = std::abs(log_batch - one.log_batch) + 2 * std::abs(log_size - one.log_size);
    if (doublings < around.doublings) {
      around.doublings = doublings;
      around.is_sheltered = (u >= 1) == (v >= 1) || u == 1 || v == 1;
    }
    if (one.pair == pair) around.same = &one;
  }
  return around;
}

// Readings with noise can contradict each other: then the bounds cross, and the higher one counts.
double MemoryLaw::expected(const Features& features, const Bounds& around) const {
  if (around.same != nullptr) return around.same->value;
  return std::max(around.low, std::min(around.high, regression_.expected(features)));
}

}  // namespace vramlab
