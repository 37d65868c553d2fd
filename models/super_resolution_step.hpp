// The training step of a super-resolution network: its convolutions, and the program of allocations and
// frees.
#pragma once

#include <vector>

#include "models/step_program.hpp"
#include "models/super_resolution.hpp"

namespace vramlab {

/// One 3 × 3 convolution with bias.
struct Convolution {
  ConvolutionSides sides;
  const ConvolutionWorkspaces* workspaces = nullptr;
  std::size_t weight = 0;  ///< number among the trained tensors; the bias follows it
};

/// All convolutions in the order the network registers them, which is the order of weights, of zeroing
/// gradients and of the optimizer. Refers to the specification it was made from.
class SuperResolutionLayers {
 public:
  explicit SuperResolutionLayers(const SuperResolutionSpec& spec);

  [[nodiscard]] const Convolution& first() const { return convolutions_.front(); }
  [[nodiscard]] const Convolution& dense(std::int64_t residual, std::int64_t block,
                                         std::int64_t number) const;
  [[nodiscard]] const Convolution& trunk() const { return convolutions_[convolutions_.size() - 3]; }
  [[nodiscard]] const Convolution& upsample() const { return convolutions_[convolutions_.size() - 2]; }
  [[nodiscard]] const Convolution& last() const { return convolutions_.back(); }

  /// What is kept for a trained tensor; each group has one slot per tensor.
  enum class Kept : std::uint32_t { value, gradient, first_moment, second_moment };

  [[nodiscard]] std::size_t tensors() const { return sizes_.size(); }
  [[nodiscard]] Tensor tensor(std::size_t number, Kept kept) const;
  [[nodiscard]] std::uint32_t persistent_slots() const {
    return static_cast<std::uint32_t>(4 * sizes_.size());
  }

 private:
  void add(const ConvolutionSides& sides, const ConvolutionWorkspaces& workspaces);

  const SuperResolutionSpec& spec_;
  std::vector<Convolution> convolutions_;
  std::vector<Bytes> sizes_;  // of the trained tensors
};

// The training step of a super-resolution network as an ordered program of allocations and frees.

/// The step at `shape` in the order PyTorch runs it: forward pass, loss, gradients of the step before set to
/// none, backward pass, Adam. The first step of a process and all later ones are the same program, because
/// absent gradients need no free and the moments of Adam are only made when absent. Duration is left at 0.
StepProgram super_resolution_step(const SuperResolutionSpec& spec, const WorkspaceShape& shape);

}  // namespace vramlab
