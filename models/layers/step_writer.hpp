// A whole step of a network: inputs, forward and backward pass, the optimizer.
#pragma once

#include <cstdint>
#include <vector>

#include "core/parameter_space.hpp"
#include "models/layers/network.hpp"
#include "models/layers/spec.hpp"
#include "models/step_program.hpp"

namespace vramlab::layers {

/// A step, and what each of its operations is for.
struct WrittenStep {
  StepProgram program;
  std::vector<Purpose> purposes;
};

/// Where the kept tensors of `network` lie.
KeptSlots kept_slots(const LayersSpec& spec, const Network& network);

/// What is there before the first step: the weights.
StepProgram write_build(const LayersSpec& spec, const Network& network);

/// The step at `point`, whose values are in the order of `parameter_names`.
WrittenStep write_step(const LayersSpec& spec, const Network& network, const Point& point);

}  // namespace vramlab::layers
