// What a library asks for where a workspace is refused, from the recorded steps that were short of memory.
#pragma once

#include <vector>

#include "fit/chosen_steps.hpp"
#include "fit/shape_program.hpp"
#include "fit/step_record.hpp"
#include "fit/union_program.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// Puts the kernels whose workspaces were refused at a shape of the model into `spec`, and their numbers into
/// its tensors, which must be there. `union_program` and `shapes` are what `spec` was made of, without loops.
///
/// Workspaces of one kernel have equal size laws (a forward pass and a gradient that agree in these are not
/// told apart), and so has what their operation allocated before: its output. That and its first size tell
/// which kernel a row of refusals belongs to. A kept plan that is refused is asked for once before the row of
/// all attempts; it is taken off. What is granted after refusals is the last attempt.
void find_refused_workspaces(const std::vector<RecordedRun>& runs, const ChosenSteps& chosen,
                             const UnionProgram& union_program, const std::vector<ShapeProgram>& shapes,
                             RecordedSpec& spec);

}  // namespace vramlab
