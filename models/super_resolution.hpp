// A super-resolution network in training: its memory and time as closed formulas of batch and patch size.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "models/workload_model.hpp"

namespace vramlab {

/// What a convolution kernel puts into its workspace. All sizes are exact (cuDNN, single precision).
///
/// Tensors lie channel by channel in memory; fast kernels want the channels of a pixel side by side, so the
/// library writes transposed copies of what it reads and of what it produces, and of the weights. The other
/// two variants transform images and weights first.
enum class WorkspaceCopies : std::uint8_t {
  none,      ///< no workspace at all
  input,     ///< the layer's input and its weights
  both,      ///< input, output and weights
  winograd,  ///< input and output as 6 × 6 numbers for every tile of 4 × 4 pixels, weights × 4
  fourier,   ///< spectra of whole images, of 64 × 64 points, and one copy of the output
};

/// An inclusive range; by default everything.
struct ShapeRange {
  std::int64_t low = 0;
  std::int64_t high = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool contains(std::int64_t value) const { return low <= value && value <= high; }
  friend bool operator==(const ShapeRange&, const ShapeRange&) = default;
};

/// The variant that a kernel library chooses for a range of shapes.
struct WorkspaceRule {
  ShapeRange batch;   ///< samples
  ShapeRange lq;      ///< side of the model's input patch, pixels
  ShapeRange pixels;  ///< batch × lq²
  WorkspaceCopies copies = WorkspaceCopies::none;
  std::int64_t pad_channels = 1;  ///< channels of a copied side are rounded up to a multiple of this
  Bytes scratch = 0;              ///< bytes on top of the copies (partial sums, alignment)

  friend bool operator==(const WorkspaceRule&, const WorkspaceRule&) = default;
};

/// The rules of one layer for each of its three kernels; the first that holds a shape applies, and where
/// none does the kernel takes no workspace.
struct ConvolutionWorkspaces {
  std::vector<WorkspaceRule> forward;
  std::vector<WorkspaceRule> input_gradient;
  std::vector<WorkspaceRule> weight_gradient;

  friend bool operator==(const ConvolutionWorkspaces&, const ConvolutionWorkspaces&) = default;
};

/// A shape the rules are asked for.
struct WorkspaceShape {
  std::int64_t batch = 1;
  std::int64_t lq = 1;

  [[nodiscard]] std::int64_t pixels() const { return batch * lq * lq; }
};

/// A 3 × 3 convolution in single precision, as a kernel sees it.
struct ConvolutionSides {
  std::int64_t input_channels = 0;
  std::int64_t output_channels = 0;
  std::int64_t enlargement = 1;  ///< side of its images over `lq`
};

/// Bytes of workspace that one kernel asks for at `shape`; 0 means that it asks for none.
Bytes workspace_size(const std::vector<WorkspaceRule>& rules, const ConvolutionSides& sides,
                     const WorkspaceShape& shape);

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

 private:
  SuperResolutionSpec spec_;
  ParameterSpace parameters_;
};

}  // namespace vramlab
