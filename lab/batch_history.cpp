#include "lab/batch_history.hpp"

#include <algorithm>

namespace vramlab {

void BatchHistory::batch_ends(const BatchRecord& batch) {
  const bool ran_out = batch.result == StepResult::oom;
  const bool predicts = batch.predicted.likely > 0;
  batches_.push_back(
      {.number = batch.number,
       .allocated = ran_out ? std::max(batch.peak_allocated, batch.wanted) : batch.peak_allocated,
       .reserved = batch.peak_reserved,
       .predicted = predicts ? batch.allocated_before + batch.predicted.likely : 0,
       .total = batch.total,
       .samples = batch.shape.samples,
       .positions = batch.padded_positions,
       .ran_out = ran_out,
       .oversize = batch.oversize});
}

}  // namespace vramlab
