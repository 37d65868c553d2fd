#include "policies/predictors/regression_predictor.hpp"

#include <algorithm>
#include <cmath>

#include "policies/contract/saved_state.hpp"

namespace vramlab {
namespace {

// What is believed before anything was seen, in GB: the noise, as if from this many batches, and how large
// the share of each feature in a batch of 16 samples with 16 images and 8,192 positions in rows of 512 may
// be. Images and positions are what activations are made of (76 % of the bytes that the recorded mix asks
// for), so they have room for the table's 0.63 GB an image and for ten times less. What would come on top of
// them (by samples, by the square of the length, by the longest row alone) has a twentieth of it: in batches
// of one mix all of these rise together, and what such batches cannot tell apart then goes to images and
// positions. Where batches do tell them apart, a few outweigh this belief.
constexpr double kNoise = 0.05;
constexpr double kNoiseBatches = 4;
constexpr double kFirstOrder = 10;
constexpr double kSecondOrder = kFirstOrder / 20;
constexpr double kScale[RegressionPredictor::kFeatures] = {
    0.5, kSecondOrder, kFirstOrder, kFirstOrder, kSecondOrder, kSecondOrder, 1};

}  // namespace

double normal_quantile(double share) {
  const double t = std::sqrt(-2 * std::log(1 - std::clamp(share, 0.5, 0.9999)));
  const double tail =
      t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  return std::max(0.0, tail);
}

RegressionPredictor::RegressionPredictor(double deviations)
    : deviations_(deviations), law_(Vector::Zero(), Vector::Map(kScale).cwiseAbs2() / (kNoise * kNoise)) {}

RegressionPredictor::Vector RegressionPredictor::features(const BatchShape& batch) {
  const double positions = static_cast<double>(batch.positions()) / 8192;
  const double longest = static_cast<double>(batch.longest) / 512;
  Vector features;
  features << 1, static_cast<double>(batch.samples) / 16, static_cast<double>(batch.images) / 16, positions,
      positions * longest, longest, batch.accumulates ? 1 : 0;
  return features;
}

// Standard deviation in GB; the prior counts as some batches.
double RegressionPredictor::noise() const {
  return std::sqrt((kNoiseBatches * kNoise * kNoise + residuals_) / (kNoiseBatches + observations_));
}

PredictedMemory RegressionPredictor::predict(const BatchShape& batch) const {
  const Vector x = features(batch);
  const double likely = std::max(0.0, law_.expected(x));
  const double spread = noise() * std::sqrt(1 + law_.variance(x));
  return {bytes_of(likely * static_cast<double>(1_GiB)),
          bytes_of((likely + deviations_ * spread) * static_cast<double>(1_GiB))};
}

void RegressionPredictor::learn(const BatchShape& batch, Bytes rise) {
  const Vector x = features(batch);
  const double taken = static_cast<double>(rise) / static_cast<double>(1_GiB);
  const double error = taken - law_.expected(x);
  residuals_ += error * error / (1 + law_.variance(x));
  observations_ += 1;
  law_.add(x, taken, 1);
}

// A lower bound teaches only where the prediction lies below it.
void RegressionPredictor::learn_at_least(const BatchShape& batch, Bytes rise) {
  if (predict(batch).likely < rise) learn(batch, rise);
}

std::vector<double> RegressionPredictor::save() const {
  std::vector<double> state;
  const auto write = [&](double number) { state.push_back(number); };
  LeastSquares<kFeatures>{law_}.visit(write);
  state.insert(state.end(), {residuals_, observations_});
  return state;
}

void RegressionPredictor::restore(std::span<const double> state) {
  require_state(state, kFeatures + kFeatures * kFeatures + 2);
  auto next = state.begin();
  const auto read = [&](double& number) { number = *next++; };
  law_.visit(read);
  read(residuals_);
  read(observations_);
}

}  // namespace vramlab
