// What every memory predictor is: learns from batches what batches need.
#pragma once

#include <span>
#include <vector>

#include "models/sample.hpp"
#include "policies/contract/composer.hpp"

namespace vramlab {

/// Learns from batches what batches need.
class MemoryPredictor {
 public:
  virtual ~MemoryPredictor() = default;

  [[nodiscard]] virtual PredictedMemory predict(const BatchShape& batch) const = 0;

  /// `batch` took `rise` bytes.
  virtual void learn(const BatchShape& batch, Bytes rise) = 0;

  /// `batch` ran out of memory: it would have taken `rise` bytes or more.
  virtual void learn_at_least(const BatchShape& batch, Bytes rise) = 0;

  /// Everything learnt, as numbers. `restore` takes as many as `save` gives.
  [[nodiscard]] virtual std::vector<double> save() const = 0;
  virtual void restore(std::span<const double> state) = 0;
};

/// Bytes nearest to `value`, which is cut to 0 … 2^60.
Bytes bytes_of(double value);

}  // namespace vramlab
