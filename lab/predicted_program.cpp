#include "lab/predicted_program.hpp"

#include <optional>
#include <vector>

#include <fmt/format.h>

#include "models/step_program.hpp"

namespace vramlab {
namespace {

constexpr int kSteps = 3;  // the first makes what stays for good, the second settles

class ProgramAuthor {
 public:
  explicit ProgramAuthor(ClientProgram& program) : program_(program) {}

  void perform(const StepProgram& step, const std::string& mark) {
    if (slots_.size() < step.slots) slots_.resize(step.slots);
    for (const MemoryOp& op : step.ops) {
      switch (op.kind) {
        case MemoryOpKind::free:
          free(op.slot);
          break;
        case MemoryOpKind::ensure:
          if (!slots_[op.slot]) allocate(op);
          break;
        case MemoryOpKind::allocate:
        case MemoryOpKind::workspace:
          allocate(op);
          break;
      }
    }
    program_.texts.push_back(mark);
    add({.detail = static_cast<std::uint32_t>(program_.texts.size() - 1), .kind = ClientAction::Kind::mark});
  }

 private:
  void add(ClientAction action) {
    action.source = static_cast<std::uint32_t>(program_.actions.size());
    program_.actions.push_back(action);
  }

  void allocate(const MemoryOp& op) {
    if (op.size == 0) return;
    slots_[op.slot] = program_.blocks++;
    add({.bytes = op.size, .block = *slots_[op.slot], .kind = ClientAction::Kind::alloc});
  }

  void free(std::uint32_t slot) {
    if (!slots_[slot]) return;
    add({.block = *slots_[slot], .kind = ClientAction::Kind::free});
    slots_[slot].reset();
  }

  ClientProgram& program_;
  std::vector<std::optional<ProgramBlock>> slots_;
};

}  // namespace

ClientProgram predicted_program(const WorkloadModel& model, const Point& point,
                                const ClientProgram& recording) {
  ClientProgram program;
  program.file = recording.file;
  program.device = recording.device;
  program.settings = recording.settings;
  program.limit = recording.limit;
  program.room = recording.room;
  program.limit_inferred = recording.limit_inferred;
  program.device_total = recording.device_total;
  ProgramAuthor author(program);
  author.perform(model.build(), "built");
  const StepProgram step = model.step(point);
  for (int number = 1; number <= kSteps; ++number) author.perform(step, fmt::format("step {}", number));
  return program;
}

}  // namespace vramlab
