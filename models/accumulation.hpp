// A training step in parts of its batch whose gradients add up before the optimizer moves once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/workload_model.hpp"

namespace vramlab {

/// The sizes of the parts of `whole`, each of `part` but for a shorter last one: 8 in parts of 3 is 3, 3, 2.
/// Both at least 1; a part that is not smaller than the whole is the whole.
std::vector<std::int64_t> parts_of_batch(std::int64_t whole, std::int64_t part);

/// `parts` one after the other, at least one, each a whole step over its part of the batch: gradients of the
/// step before are dropped at the beginning, those of the first part stay while the later ones' are added to
/// them (`accumulating`), and what comes behind the backward pass (the optimizer) is done once, at the end.
/// Backward ends with the last gradient and the frees behind it. What a part still holds then (its input, its
/// loss) is freed before the next begins. The duration is the sum: the optimizer's is contained in each.
StepProgram step_in_parts(std::span<const StepProgram> parts);

/// The step of `model` at `point` in parts: parameter number `parameter` of each part is at most `part`.
StepProgram step_in_parts(const WorkloadModel& model, const Point& point, std::size_t parameter,
                          std::int64_t part);

}  // namespace vramlab
