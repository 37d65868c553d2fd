// What a report needs of every batch of an epoch run.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/epoch_loop.hpp"

namespace vramlab {

/// The figures of one batch. `number` counts from 1.
struct BatchFigures {
  std::int64_t number = 0;
  Bytes allocated = 0;  ///< its peak; of a failed batch what it would have had at least
  Bytes reserved = 0;
  Bytes predicted = 0;  ///< peak that was expected; 0 = nothing was predicted
  Bytes total = 0;      ///< what the program may use
  std::int64_t samples = 0;
  std::int64_t positions = 0;  ///< as collated, padding included
  bool ran_out = false;
  bool oversize = false;  ///< a single sample, predicted over budget
};

/// Keeps them all: 64 bytes a batch.
class BatchHistory : public BatchListener {
 public:
  void batch_ends(const BatchRecord& batch) override;
  void epoch_ends(std::int64_t /*epoch*/, const EpochTotals& /*totals*/) override {}

  [[nodiscard]] const std::vector<BatchFigures>& batches() const { return batches_; }

 private:
  std::vector<BatchFigures> batches_;
};

}  // namespace vramlab
