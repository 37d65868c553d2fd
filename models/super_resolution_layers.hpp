// The convolutions of a super-resolution network and the slots of what is kept for each of them.
#pragma once

#include <vector>

#include "models/program_writer.hpp"
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

}  // namespace vramlab
