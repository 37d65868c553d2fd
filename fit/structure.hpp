// What occurs where: groups of operations by parameters and shapes, and workspaces where memory is short.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "fit/parameters.hpp"
#include "fit/step_record.hpp"
#include "fit/union_program.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// The groups of a model; number 0 is what always occurs.
class StructureGroups {
 public:
  StructureGroups(const FitParameters& parameters, std::uint32_t main_product);

  /// The group of what occurs at `in`, of the shapes of `within`. A threshold on the main product or on a
  /// single parameter is taken where it describes `in`, at the geometric middle of its two neighbours,
  /// inclusive; but only for whole tensors (`within` = all shapes).
  std::uint32_t number_of(ShapeSet in, ShapeSet within);

  /// The same, where the nearest recorded shape decides and no threshold.
  std::uint32_t nearest_number_of(ShapeSet in, ShapeSet within);

  [[nodiscard]] const std::vector<RecordedGroup>& groups() const { return groups_; }
  [[nodiscard]] ShapeSet all() const { return all_; }

 private:
  std::uint32_t add(ShapeSet in, ShapeSet within, bool may_have_threshold);
  [[nodiscard]] bool find_threshold(RecordedGroup& group, std::uint32_t monomial) const;

  const FitParameters& parameters_;
  std::uint32_t main_product_;
  ShapeSet all_ = 0;
  std::vector<RecordedGroup> groups_;
  std::map<std::tuple<ShapeSet, ShapeSet, bool>, std::uint32_t> numbers_;
};

// What a library asks for where a workspace is refused, from the recorded steps that were short of memory.

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
