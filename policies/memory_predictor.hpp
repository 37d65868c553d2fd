// What a predictor of batch memory is: it is shown peaks of whole batches, never of a sample.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/sample.hpp"
#include "sim/core/units.hpp"

namespace vramlab {

/// Bytes that a batch takes at its peak above what is allocated before it.
struct PredictedMemory {
  Bytes likely = 0;
  Bytes at_most = 0;  ///< what a budget is held against; at least `likely`
};

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

/// Throws InputError unless `state` has `expected` numbers.
void require_state(std::span<const double> state, std::size_t expected);

}  // namespace vramlab
