#include "models/super_resolution.hpp"

#include <array>
#include <utility>

#include "models/super_resolution_layers.hpp"
#include "models/super_resolution_step.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
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

StepProgram SuperResolution::build() const {
  const SuperResolutionLayers layers(spec_);
  ProgramWriter writer(layers.persistent_slots());
  for (std::size_t i = 0; i < layers.tensors(); ++i) {
    writer.make_persistent(layers.tensor(i, SuperResolutionLayers::Kept::value));
  }
  return writer.finish();
}

StepProgram SuperResolution::step(const Point& point) const {
  StepProgram program = super_resolution_step(spec_, {point[0], point[1]});
  program.duration = spec_.time.duration(pixels(point));
  program.workspace_refusals = spec_.workspace_refusals;
  return program;
}

std::int64_t SuperResolution::samples(const Point& point) const { return point[0]; }

std::int64_t SuperResolution::pixels(const Point& point) const { return point[0] * point[1] * point[1]; }

std::size_t SuperResolution::trained_tensors() const { return SuperResolutionLayers(spec_).tensors(); }

}  // namespace vramlab
