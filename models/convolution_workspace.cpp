#include "models/convolution_workspace.hpp"

#include <algorithm>

namespace vramlab {
namespace {

constexpr std::int64_t kFloat = 4;  // bytes
constexpr std::int64_t kKernelArea = 3 * 3;

std::int64_t padded(std::int64_t channels, std::int64_t multiple) {
  return (channels + multiple - 1) / multiple * multiple;
}

bool holds(const WorkspaceRule& rule, const WorkspaceShape& shape) {
  return rule.batch.contains(shape.batch) && rule.lq.contains(shape.lq) &&
         rule.pixels.contains(shape.pixels());
}

// Floats for the spectrum of one image and channel: 64 × 33 complex numbers, in two buffers.
constexpr std::int64_t kSpectrum = 2 * 2 * 64 * 33;

std::int64_t floats_of(WorkspaceCopies copies, std::int64_t input, std::int64_t output,
                       const WorkspaceShape& shape, std::int64_t side) {
  const std::int64_t pixels = shape.batch * side * side;
  const std::int64_t weights = kKernelArea * input * output;
  switch (copies) {
    case WorkspaceCopies::input:
      return input * pixels + weights;
    case WorkspaceCopies::both:
      return (input + output) * pixels + weights;
    case WorkspaceCopies::winograd: {
      const std::int64_t tiles = (side + 3) / 4;
      return (input + output) * 6 * 6 * shape.batch * tiles * tiles + weights * 4;
    }
    case WorkspaceCopies::fourier:
      return kSpectrum * std::max(shape.batch * (input + output), input * output) + output * pixels;
    case WorkspaceCopies::none:
      break;
  }
  return 0;
}

Bytes size_of(const WorkspaceRule& rule, const ConvolutionSides& sides, const WorkspaceShape& shape) {
  if (rule.copies == WorkspaceCopies::none) return 0;
  const std::int64_t floats =
      floats_of(rule.copies, padded(sides.input_channels, rule.pad_channels),
                padded(sides.output_channels, rule.pad_channels), shape, shape.lq * sides.enlargement);
  return static_cast<Bytes>(kFloat * floats) + rule.scratch;
}

}  // namespace

Bytes workspace_size(const std::vector<WorkspaceRule>& rules, const ConvolutionSides& sides,
                     const WorkspaceShape& shape) {
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const WorkspaceRule& r) { return holds(r, shape); });
  return rule == rules.end() ? 0 : size_of(*rule, sides, shape);
}

}  // namespace vramlab
