// Prediction by online regression over what a batch is made of, with its uncertainty (`regression`).
#pragma once

#include "policies/predictors/memory_law.hpp"
#include "policies/predictors/memory_predictor.hpp"

namespace vramlab {

/// Recursive least squares with a ridge, over (1, samples, images, positions, positions · longest, longest),
/// and 1 for a micro-batch that keeps gradients. What a batch takes at most is the likely value plus
/// `deviations` standard deviations, of the noise seen so far and of the coefficients together: where little
/// was seen, a batch like none before is predicted high.
class RegressionPredictor final : public MemoryPredictor {
 public:
  static constexpr int kFeatures = 7;

  /// `deviations` ≥ 0; see `normal_quantile`.
  explicit RegressionPredictor(double deviations);

  [[nodiscard]] PredictedMemory predict(const BatchShape& batch) const override;
  void learn(const BatchShape& batch, Bytes rise) override;
  void learn_at_least(const BatchShape& batch, Bytes rise) override;
  [[nodiscard]] std::vector<double> save() const override;
  void restore(std::span<const double> state) override;

 private:
  using Vector = LeastSquares<kFeatures>::Vector;
  [[nodiscard]] static Vector features(const BatchShape& batch);
  [[nodiscard]] double noise() const;

  double deviations_;
  LeastSquares<kFeatures> law_;  ///< its variances are in units of the noise's
  double residuals_ = 0;  ///< sum of squared errors made before learning, each over its expected size; GB²
  double observations_ = 0;
};

/// How many standard deviations above the mean a normal value lies with probability `share`, 0.5 to 0.9999;
/// exact to 0.0005 (Abramowitz and Stegun 26.2.23).
double normal_quantile(double share);

}  // namespace vramlab
