#include "fit/shape_program.hpp"

namespace vramlab {
namespace {

constexpr std::uint32_t kBrief = 3;  // actions; what a library asks for and returns around one kernel

}  // namespace

ShapeProgram shape_program(const StepRecord& step, bool extras) {
  ShapeProgram program{.parameters = step.mark.parameters};
  std::vector<std::uint32_t> number(step.allocations.size(), 0);
  std::int32_t rank = 0;
  for (std::size_t i = 0; i < step.allocations.size(); ++i) {
    const StepAllocation& allocation = step.allocations[i];
    if (allocation.fate == Fate::forever) continue;
    number[i] = static_cast<std::uint32_t>(program.allocations.size());
    const bool kept = allocation.fate == Fate::kept;
    program.allocations.push_back(
        {{allocation.size}, -1, kept ? rank++ : -1, !kept && allocation.actions <= kBrief});
  }
  std::uint32_t extra = 0;
  using Kind = RecordedOp::Kind;
  for (const StepAction& action : step.actions) {
    switch (action.kind) {
      case StepAction::Kind::allocate:
        if (step.allocations[action.what].fate != Fate::forever) {
          program.ops.push_back({Kind::allocate, number[action.what]});
        } else if (extras) {
          program.ops.push_back({Kind::ensure, extra++});
        }
        break;
      case StepAction::Kind::free:
        program.ops.push_back({Kind::free, number[action.what]});
        break;
      case StepAction::Kind::free_kept:
        if (!extras) program.ops.push_back({Kind::free_kept, action.what});
        break;
    }
  }
  return program;
}

}  // namespace vramlab
