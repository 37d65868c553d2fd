// Which of the recorded steps a model is made from.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fit/step_record.hpp"

namespace vramlab {

/// The step that stands for each shape, and the first step of the process.
struct ChosenSteps {
  std::vector<const StepRecord*>
      settled;  ///< the last visit of each shape in the first run that has it, in order
  const StepRecord* first = nullptr;
  std::size_t first_shape = 0;
  /// It stands for its shape, for want of another, though it frees no gradients.
  bool first_is_alone = false;
};

/// Chooses them from the steps of all `runs` and adds warnings on those left out. Steps that ran out of
/// memory are left out; so are those at a shape where workspaces were refused, from then on, and the first
/// step of each process where another has its shape: it frees no gradients. Throws InputError if no step
/// succeeded, there is only one, or shapes are more than kMostShapes.
ChosenSteps choose_steps(const std::vector<RecordedRun>& runs, std::vector<std::string>& warnings);

}  // namespace vramlab
