// A super-resolution network in training: its memory and time as closed formulas of batch and patch size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/convolution_workspace.hpp"
#include "models/step_time.hpp"
#include "models/workload_model.hpp"

namespace vramlab {

/// A sum over many elements runs in two stages: partial sums into a buffer, which a counter per output
/// guards. Follows PyTorch's reduction kernels.
struct ReductionLaw {
  std::int64_t two_stages_from = 131072;  ///< elements summed into one output; fewer need no buffer
  std::int64_t elements_per_part = 8192;
  std::int64_t most_parts = 528;  ///< of all outputs together: 4 per multiprocessor

  friend bool operator==(const ReductionLaw&, const ReductionLaw&) = default;
};

/// Residual-in-residual dense blocks, one upsampling by `scale`, single precision, mean absolute error, Adam.
/// All sizes of tensors follow from this; workspaces and time have laws of their own.
struct SuperResolutionSpec {
  std::string name;
  std::int64_t image_channels = 3;
  std::int64_t channels = 64;           ///< of the trunk
  std::int64_t growth = 32;             ///< channels that each convolution of a dense block adds
  std::int64_t residual_blocks = 6;     ///< outer blocks
  std::int64_t dense_blocks = 3;        ///< in each outer block
  std::int64_t dense_convolutions = 5;  ///< in each dense block, at least 2; the last returns to `channels`
  std::int64_t scale = 2;               ///< side of the output over side of the input
  Parameter batch{"batch", 1, 64};      ///< samples of a step
  Parameter lq{"lq", 32, 256};          ///< side of the square input patch, pixels
  ConvolutionWorkspaces first;          ///< image → trunk
  std::vector<ConvolutionWorkspaces> dense;  ///< one entry per convolution of a dense block
  ConvolutionWorkspaces trunk;               ///< behind the outer blocks
  ConvolutionWorkspaces upsample;            ///< at the output's resolution
  ConvolutionWorkspaces last;                ///< trunk → image, at the output's resolution
  std::uint32_t workspace_refusals = 21;     ///< attempts before a convolution does without its workspace
  ReductionLaw reduction;
  StepTimeLaw time;

  friend bool operator==(const SuperResolutionSpec&, const SuperResolutionSpec&) = default;
};

/// The workload of one specification. Parameters in this order: batch, lq.
class SuperResolution : public WorkloadModel {
 public:
  /// Throws InputError if a count is not positive or `dense` has not one entry per dense convolution.
  explicit SuperResolution(SuperResolutionSpec spec);

  [[nodiscard]] const ParameterSpace& parameters() const override { return parameters_; }
  [[nodiscard]] StepProgram build() const override;
  [[nodiscard]] StepProgram step(const Point& point) const override;
  [[nodiscard]] std::int64_t samples(const Point& point) const override;

  /// Input pixels of a step: batch × lq².
  [[nodiscard]] std::int64_t pixels(const Point& point) const override;

  [[nodiscard]] const SuperResolutionSpec& spec() const { return spec_; }

  /// Trained tensors: a weight and a bias for every convolution.
  [[nodiscard]] std::size_t trained_tensors() const;

 private:
  SuperResolutionSpec spec_;
  ParameterSpace parameters_;
};

}  // namespace vramlab
