#include "models/super_resolution.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"

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

namespace {

void check(const SuperResolutionSpec& spec) {
  struct Count {
    const char* what;
    std::int64_t value;
    std::int64_t least;
  };
  const std::array counts{
      Count{"image_channels", spec.image_channels, 1},
      Count{"channels", spec.channels, 1},
      Count{"growth", spec.growth, 1},
      Count{"residual_blocks", spec.residual_blocks, 1},
      Count{"dense_blocks", spec.dense_blocks, 1},
      Count{"dense_convolutions", spec.dense_convolutions, 2},
      Count{"scale", spec.scale, 1},
      Count{"batch: low", spec.batch.low, 1},
      Count{"batch: high", spec.batch.high, spec.batch.low},
      Count{"lq: low", spec.lq.low, 1},
      Count{"lq: high", spec.lq.high, spec.lq.low},
      Count{"reduction: two_stages_from", spec.reduction.two_stages_from, 1},
      Count{"reduction: elements_per_part", spec.reduction.elements_per_part, 1},
      Count{"reduction: most_parts", spec.reduction.most_parts, 1},
  };
  std::vector<Problem> problems;
  for (const Count& count : counts) {
    if (count.value >= count.least) continue;
    problems.push_back({spec.name, std::string(count.what) + " is " + std::to_string(count.value) +
                                       "; it must be at least " + std::to_string(count.least)});
  }
  if (static_cast<std::int64_t>(spec.dense.size()) != spec.dense_convolutions) {
    problems.push_back({spec.name, "there are workspace rules for " + std::to_string(spec.dense.size()) +
                                       " convolutions of a dense block; it has " +
                                       std::to_string(spec.dense_convolutions)});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace

SuperResolution::SuperResolution(SuperResolutionSpec spec) : spec_(std::move(spec)) {
  check(spec_);
  parameters_.parameters = {spec_.batch, spec_.lq};
}

std::int64_t SuperResolution::samples(const Point& point) const { return point[0]; }

std::int64_t SuperResolution::pixels(const Point& point) const { return point[0] * point[1] * point[1]; }

}  // namespace vramlab
