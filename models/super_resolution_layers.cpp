#include "models/super_resolution_layers.hpp"

namespace vramlab {
namespace {

constexpr std::int64_t kFloat = 4;  // bytes
constexpr std::int64_t kKernelArea = 3 * 3;

}  // namespace

SuperResolutionLayers::SuperResolutionLayers(const SuperResolutionSpec& spec) : spec_(spec) {
  add({spec.image_channels, spec.channels, 1}, spec.first);
  for (std::int64_t block = 0; block < spec.residual_blocks * spec.dense_blocks; ++block) {
    for (std::int64_t c = 0; c < spec.dense_convolutions; ++c) {
      const bool closes_block = c + 1 == spec.dense_convolutions;
      add({spec.channels + c * spec.growth, closes_block ? spec.channels : spec.growth, 1},
          spec.dense[static_cast<std::size_t>(c)]);
    }
  }
  add({spec.channels, spec.channels, 1}, spec.trunk);
  add({spec.channels, spec.channels, spec.scale}, spec.upsample);
  add({spec.channels, spec.image_channels, spec.scale}, spec.last);
}

const Convolution& SuperResolutionLayers::dense(std::int64_t residual, std::int64_t block,
                                                std::int64_t number) const {
  const std::int64_t blocks_before = residual * spec_.dense_blocks + block;
  return convolutions_[static_cast<std::size_t>(1 + blocks_before * spec_.dense_convolutions + number)];
}

Tensor SuperResolutionLayers::tensor(std::size_t number, Kept kept) const {
  const std::size_t slot = static_cast<std::size_t>(kept) * sizes_.size() + number;
  return {static_cast<std::uint32_t>(slot), sizes_[number]};
}

void SuperResolutionLayers::add(const ConvolutionSides& sides, const ConvolutionWorkspaces& workspaces) {
  convolutions_.push_back({sides, &workspaces, sizes_.size()});
  sizes_.push_back(static_cast<Bytes>(kFloat * kKernelArea * sides.input_channels * sides.output_channels));
  sizes_.push_back(static_cast<Bytes>(kFloat * sides.output_channels));
}

}  // namespace vramlab
