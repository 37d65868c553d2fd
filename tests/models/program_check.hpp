// Walks a step program as an executor would and notes what is wrong with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "models/step_program.hpp"

namespace vramlab {

/// What lives in the slots of one process, and what programs did to it.
class ProgramCheck {
 public:
  /// One allocation or free as a recording of the program would show it.
  struct Event {
    std::int64_t size = 0;  ///< negative: freed
    bool workspace = false;

    friend bool operator==(const Event&, const Event&) = default;
  };

  /// Performs `program`; every request is granted. Empty, or the first thing that is wrong.
  std::string run(const StepProgram& program) {
    events_.clear();
    slots_.resize(std::max<std::size_t>(slots_.size(), program.slots));
    for (const MemoryOp& op : program.ops) {
      if (op.slot >= program.slots)
        return "slot " + std::to_string(op.slot) + " is beyond the program's slots";
      Slot& slot = slots_[op.slot];
      if (op.kind == MemoryOpKind::free) {
        if (slot.size != 0) events_.push_back({-static_cast<std::int64_t>(slot.size), slot.workspace});
        slot = {};
        continue;
      }
      if (op.size == 0) return "an allocation of 0 bytes";
      if (slot.size != 0 && op.kind == MemoryOpKind::ensure) continue;
      if (slot.size != 0) return "slot " + std::to_string(op.slot) + " is filled twice";
      slot = {op.size, op.kind == MemoryOpKind::workspace};
      events_.push_back({static_cast<std::int64_t>(op.size), slot.workspace});
    }
    for (std::size_t i = program.persistent_slots; i < slots_.size(); ++i) {
      if (slots_[i].size != 0) return "slot " + std::to_string(i) + " of the step outlives it";
    }
    return {};
  }

  [[nodiscard]] const std::vector<Event>& events() const { return events_; }

  /// Slots in [begin, end) that hold something.
  [[nodiscard]] std::size_t live(std::size_t begin, std::size_t end) const {
    std::size_t count = 0;
    for (std::size_t i = begin; i < end; ++i) count += slots_[i].size != 0 ? 1 : 0;
    return count;
  }

 private:
  struct Slot {
    Bytes size = 0;
    bool workspace = false;
  };

  std::vector<Slot> slots_;
  std::vector<Event> events_;
};

}  // namespace vramlab
