// What a batch of samples does to memory: a program that builds the workload, and a step for every batch.
#pragma once

#include <span>
#include <string>

#include "models/sample.hpp"
#include "models/step_program.hpp"

namespace vramlab {

/// A workload whose steps follow from the samples of a batch.
class BatchModel {
 public:
  virtual ~BatchModel() = default;

  /// What is allocated before the first step; only persistent slots.
  [[nodiscard]] virtual StepProgram build() const = 0;

  /// The step over `batch`, which has at least one sample. Throws InputError for a batch that the model
  /// cannot express.
  [[nodiscard]] virtual StepProgram step(std::span<const Sample> batch) const = 0;
};

/// `step` as a later micro-batch of an accumulated step does it: the gradients of the micro-batches before
/// stay, and each new one lives only until it has been added to the old. Which persistent tensors are
/// gradients: those that the step itself makes anew each time.
StepProgram accumulating(StepProgram step);

}  // namespace vramlab
