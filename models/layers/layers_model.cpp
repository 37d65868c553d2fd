#include "models/layers/layers_model.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "models/layers/step_writer.hpp"

namespace vramlab::layers {

LayersModel::LayersModel(LayersSpec spec) : spec_((check(spec), std::move(spec))), network_(spec_) {
  parameters_.parameters = spec_.parameters;
}

StepProgram LayersModel::build() const { return write_build(spec_, network_); }

StepProgram LayersModel::step(const Point& point) const { return write_step(spec_, network_, point).program; }

std::int64_t LayersModel::pixels(const Point& point) const {
  if (family_of(spec_.network.architecture) == Family::vision) return product({point[0], point[1], point[1]});
  return product({point[0], point[1]});
}

namespace {

/// Counts live bytes by what they are for, and remembers the highest sum.
class Count {
 public:
  Count(const KeptSlots& slots, std::size_t weights) : slots_(slots), weights_(weights) {}

  void perform(const StepProgram& program, const std::vector<Purpose>& purposes) {
    if (live_.size() < program.slots) live_.resize(program.slots);
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      const MemoryOp& op = program.ops[i];
      Block& block = live_[op.slot];
      if (op.kind == MemoryOpKind::free) {
        if (block.size > 0) *block.part -= block.size;
        block.size = 0;
        continue;
      }
      if (block.size > 0) continue;
      constexpr Bytes kUnit = 512;
      block = {round_up(op.size, kUnit),
               part_of(op.slot, purposes.empty() ? Purpose::activations : purposes[i])};
      *block.part += block.size;
      if (now_.sum() > peak_.sum()) peak_ = now_;
    }
  }

  [[nodiscard]] const Breakdown& peak() const { return peak_; }

 private:
  struct Block {
    Bytes size = 0;
    Bytes* part = nullptr;
  };

  Bytes* part_of(std::uint32_t slot, Purpose purpose) {
    if (slot < weights_) return &now_.weights;
    if (slot < 2 * weights_) return &now_.gradients;
    if (slot < slots_.workspace(0)) return &now_.optimizer;
    if (slot < slots_.all()) return &now_.workspaces;
    switch (purpose) {
      case Purpose::gradients:
        return &now_.gradients;
      case Purpose::optimizer:
        return &now_.optimizer_temporary;
      case Purpose::logits:
        return &now_.logits;
      case Purpose::gathered:
        return &now_.gathered;
      case Purpose::cache:
        return &now_.cache;
      case Purpose::workspaces:
        return &now_.workspaces;
      case Purpose::activations:
        break;
    }
    return &now_.activations;
  }

  const KeptSlots slots_;
  std::size_t weights_;
  std::vector<Block> live_;
  Breakdown now_;
  Breakdown peak_;
};

}  // namespace

Breakdown LayersModel::breakdown(const Point& point) const {
  Count count(kept_slots(spec_, network_), network_.weights.all().size());
  count.perform(build(), {});
  const WrittenStep step = write_step(spec_, network_, point);
  for (int i = 0; i < 2; ++i) count.perform(step.program, step.purposes);
  return count.peak();
}

}  // namespace vramlab::layers
