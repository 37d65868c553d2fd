// A workload of batches by a table: so many bytes for a sample with so many images, so many for a token.
#pragma once

#include <vector>

#include "models/batch_model.hpp"
#include "sim/core/units.hpp"

namespace vramlab {

/// The table. Sizes in bytes; each tensor is rounded up to 2 MiB, so that PyTorch's rules neither round nor
/// split.
struct SampleSizes {
  Bytes resident = 0;             ///< weights, live all the time
  std::vector<Bytes> by_images;   ///< of a sample with 0, 1, 2 … images; the last counts for more
  Bytes per_token = 0;            ///< of a padded row, for each position
  double floor_seconds = 0.05;    ///< a step takes at least so long …
  double seconds_per_sample = 0;  ///< … and so long for each of its samples
};

/// All samples of a batch live at the same time, from the first to the last, and go together.
class SampleSizeModel : public BatchModel {
 public:
  explicit SampleSizeModel(SampleSizes sizes) : sizes_(std::move(sizes)) {}

  [[nodiscard]] StepProgram build() const override;
  [[nodiscard]] StepProgram step(std::span<const Sample> batch) const override;

 private:
  SampleSizes sizes_;
};

}  // namespace vramlab
