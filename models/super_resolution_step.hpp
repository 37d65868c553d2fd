// The training step of a super-resolution network as an ordered program of allocations and frees.
#pragma once

#include "models/step_program.hpp"
#include "models/super_resolution.hpp"

namespace vramlab {

/// The step at `shape` in the order PyTorch runs it: forward pass, loss, gradients of the step before set to
/// none, backward pass, Adam. The first step of a process and all later ones are the same program, because
/// absent gradients need no free and the moments of Adam are only made when absent. Duration is left at 0.
StepProgram super_resolution_step(const SuperResolutionSpec& spec, const WorkspaceShape& shape);

}  // namespace vramlab
