// Recursive least squares with a prior: a regression that learns one reading at a time and knows how far off
// it may be.
#pragma once

#include <cmath>

#include <Eigen/Core>

namespace vramlab {

/// A Bayesian linear regression of `N` weights with Gaussian noise. No heap.
template <int N>
class LeastSquares {
 public:
  using Vector = Eigen::Matrix<double, N, 1>;

  LeastSquares() = default;

  /// Before any reading each weight is `mean` ± `deviation`, one standard deviation.
  LeastSquares(const Vector& mean, const Vector& deviation) : weights_(mean) {
    covariance_.setZero();
    covariance_.diagonal() = deviation.cwiseAbs2();
  }

  /// Learns that `features` gave `value`, a reading with standard deviation `noise` > 0.
  void add(const Vector& features, double value, double noise) {
    const Vector spread = covariance_ * features;
    const double total = features.dot(spread) + noise * noise;
    weights_ += spread * ((value - features.dot(weights_)) / total);
    covariance_ -= spread * spread.transpose() / total;
  }

  [[nodiscard]] double expected(const Vector& features) const { return features.dot(weights_); }

  /// Standard deviation of what is expected, the noise of a single reading aside.
  [[nodiscard]] double deviation(const Vector& features) const {
    const Vector spread = covariance_ * features;
    return std::sqrt(std::max(0.0, features.dot(spread)));
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

}  // namespace vramlab
