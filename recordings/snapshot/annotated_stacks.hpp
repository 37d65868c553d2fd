// The annotations of a snapshot as the stacks of what was allocated within them.
#pragma once

#include <string_view>

#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// The file of frames that stand for annotations; they have no line. The outermost one of every stack is
/// called kAnnotatedProgram.
inline constexpr std::string_view kAnnotationFile = "annotation";
inline constexpr std::string_view kAnnotatedProgram = "(program)";

/// Where no entry of any history has a stack: gives each entry the annotations (torch.profiler's
/// record_function) that were open on its device, the innermost first, or, where there are none, the words of
/// its `user_metadata`, "a.b" within "a"; entries outside all of them have none still. What an optimizer
/// notes of itself counts for nothing, and no more does anything within an annotation whose name contains
/// "backward" or "optim". Does nothing where entries have stacks, or where nothing else is noted. Whether it
/// did something.
bool name_stacks(TorchSnapshot& snapshot);

}  // namespace vramlab
