// How the memory of a step follows from batch and size: learnt from few readings, with an upper bound.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

// Sums in one order everywhere, with vectors of the processor or without: answers are equal to the bit.
#define EIGEN_DONT_VECTORIZE
#include <Eigen/Core>

namespace vramlab {

/// Up to `N` items in the order in which they were added.
template <class Item, std::size_t N>
class FixedList {
 public:
  /// Adds `item`; where there is no room, the oldest one goes.
  void push(const Item& item) {
    if (size_ == N) std::rotate(items_.begin(), items_.begin() + 1, items_.end());
    if (size_ < N) ++size_;
    items_[size_ - 1] = item;
  }

  /// Removes every item that `is_bad`.
  template <class Test>
  void remove_if(const Test& is_bad) {
    size_ = static_cast<std::size_t>(std::remove_if(begin(), end(), is_bad) - begin());
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] auto begin() { return items_.begin(); }
  [[nodiscard]] auto end() { return items_.begin() + static_cast<std::ptrdiff_t>(size_); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.begin() + static_cast<std::ptrdiff_t>(size_); }

  template <class State>
  void visit(State& state) {
    state.count(size_, N);
    for (Item& item : *this) state(item);
  }

 private:
  std::array<Item, N> items_{};
  std::size_t size_ = 0;
};

/// A Bayesian linear regression of `N` weights with Gaussian noise: recursive least squares with a prior,
/// which learns one reading at a time and knows how far off it may be. No heap.
template <int N>
class LeastSquares {
 public:
  using Vector = Eigen::Matrix<double, N, 1>;

  LeastSquares() = default;

  /// What is believed of each weight before any reading.
  LeastSquares(const Vector& mean, const Vector& variance) : weights_(mean) {
    covariance_.diagonal() = variance;
  }

  /// Learns that `features` gave `value`, a reading with standard deviation `noise` > 0.
  void add(const Vector& features, double value, double noise) {
    const Vector spread = covariance_ * features;
    const double total = features.dot(spread) + noise * noise;
    weights_ += spread * ((value - features.dot(weights_)) / total);
    covariance_ -= spread * spread.transpose() / total;
  }

  [[nodiscard]] double expected(const Vector& features) const { return features.dot(weights_); }

  /// Variance of what is expected, the noise of a single reading aside; rounding can make it negative.
  [[nodiscard]] double variance(const Vector& features) const {
    const Vector spread = covariance_ * features;
    return features.dot(spread);
  }

  /// Its root: the standard deviation.
  [[nodiscard]] double deviation(const Vector& features) const {
    return std::sqrt(std::max(0.0, variance(features)));
  }

  [[nodiscard]] const Vector& weights() const { return weights_; }

  template <class State>
  void visit(State& state) {
    for (int i = 0; i < N; ++i) state(weights_[i]);
    for (int i = 0; i < N * N; ++i) state(covariance_(i / N, i % N));
  }

 private:
  Vector weights_ = Vector::Zero();
  Eigen::Matrix<double, N, N> covariance_ = Eigen::Matrix<double, N, N>::Zero();
};

/// The two parameters of a workload that decide about memory: how many samples, and how large one is. A
/// workload without a size has 1 there.
struct WorkPair {
  std::int64_t batch = 1;
  std::int64_t size = 1;

  friend bool operator==(const WorkPair&, const WorkPair&) = default;

  template <class State>
  void visit(State& state) {
    state(batch, size);
  }
};

/// Whether `a` is at least `b` in both.
inline bool at_or_beyond(const WorkPair& a, const WorkPair& b) {
  return a.batch >= b.batch && a.size >= b.size;
}

/// Memory m(batch, size) as a sum of 1, batch, size, batch·size, size² and batch·size² with weights that are
/// not negative. Values are in any one unit above 0.
///
/// From a single reading follows a strict bound already: no term grows faster than batch·size². Between that
/// bound and its mirror image below lies what the regression expects. What no such law explains (workspaces
/// that come and go with the shape) is learnt from the errors of earlier predictions, per doubling of the
/// work between a pair and the nearest one that was measured.
class MemoryLaw {
 public:
  /// Learns that steps at `pair` take `value`, ± `noise` (standard deviation, a share of `value`).
  void add(const WorkPair& pair, double value, double noise);

  [[nodiscard]] bool empty() const { return measured_.empty(); }
  [[nodiscard]] std::size_t pairs() const { return measured_.size(); }
  [[nodiscard]] bool has_measured(const WorkPair& pair) const;

  /// What a step at `pair` should take. The law must not be empty.
  [[nodiscard]] double expected(const WorkPair& pair) const;

  /// What it takes at most: of a measured pair its own reading, of any other `confidence` standard deviations
  /// above what is expected, and never below a smaller pair's reading. Beyond all measured pairs, as long as
  /// readings hardly grow with them, it is the strict bound: their peak may be an optimizer's or a
  /// workspace's, which hides how samples grow.
  [[nodiscard]] double upper(const WorkPair& pair, double confidence) const;

  /// How little is known about `pair`: one standard deviation of the regression.
  [[nodiscard]] double deviation(const WorkPair& pair) const;

  /// Error of a prediction per doubling of the work, as a share of the value.
  [[nodiscard]] double misfit() const { return misfit_; }

  template <class State>
  void visit(State& state) {
    state(regression_, measured_, reference_, misfit_, checks_);
  }

 private:
  static constexpr std::size_t kMostPairs = 8;

  // The error per doubling that is assumed before any prediction could be checked, and how many checks that
  // assumption counts for.
  static constexpr double kAssumedMisfit = 0.02;
  static constexpr double kAssumedChecks = 2;

  using Features = LeastSquares<6>::Vector;

  struct Measured {
    WorkPair pair;
    double value = 0;
    double log_batch = 0;  ///< logarithms to base 2
    double log_size = 0;

    template <class State>
    void visit(State& state) {
      state(pair, value, log_batch, log_size);
    }
  };

  /// What the readings say without any regression.
  struct Bounds {
    double low = 0;            ///< no term shrinks faster than batch·size²
    double high = 0;           ///< no term grows faster
    double smaller = 0;        ///< largest reading of a pair at or below
    double doublings = 0;      ///< distance to the nearest reading
    bool is_sheltered = true;  ///< from there both parameters move the same way, or one of them alone
    const Measured* same = nullptr;
  };

  [[nodiscard]] Features features(const WorkPair& pair) const;
  [[nodiscard]] Bounds bounds(const WorkPair& pair) const;
  [[nodiscard]] bool hides_growth(const WorkPair& pair) const;
  [[nodiscard]] double expected(const Features& features, const Bounds& bounds) const;

  LeastSquares<6> regression_;
  FixedList<Measured, kMostPairs> measured_;
  WorkPair reference_;  ///< features are shares of this pair's
  double misfit_ = kAssumedMisfit;
  double checks_ = kAssumedChecks;  ///< how many errors `misfit_` is made of, the assumed ones among them
};

}  // namespace vramlab
