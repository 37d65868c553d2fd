// How much scratch memory a convolution takes while it runs: a law with exact sizes, and rules for its
// variants.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/core/units.hpp"

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

}  // namespace vramlab
