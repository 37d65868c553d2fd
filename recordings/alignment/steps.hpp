// Where the steps of a recorded program begin and end.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "recordings/lifetimes/uses.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// A program cut into stretches: what came before its first step, each step, and what came after the last.
struct ProgramSteps {
  std::vector<std::size_t> ends;  ///< of each stretch, the action after its last one; the last is all actions
  /// How they were found: "marks", "gradients" (their rhythm), or "none": then all of it is one step.
  std::string from = "none";

  /// Steps of the program, without what lies before and after them.
  [[nodiscard]] std::size_t count() const { return ends.size() - 2; }
  /// The stretch of an action: 0 before the first step, n in the n-th step.
  [[nodiscard]] std::size_t stretch_of(std::size_t action) const;
  /// The first action of a stretch.
  [[nodiscard]] std::size_t begin_of(std::size_t stretch) const {
    return stretch == 0 ? 0 : ends[stretch - 1];
  }
};

/// The mark that comes most often ends a step, of several the one that comes last; marks between any two of
/// them are phases. Where they are not, as when shapes have names, every mark ends a step. Without marks that
/// come twice, those behind the last weight do, and without any, the last gradient of each step.
ProgramSteps steps_of(const ClientProgram& program, const ProgramUses& uses);

/// The program up to the end of its first `count` steps; all of it where it has no more.
ClientProgram first_steps(const ClientProgram& program, const ProgramSteps& steps, std::size_t count);

}  // namespace vramlab
