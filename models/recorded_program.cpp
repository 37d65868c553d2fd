#include "models/recorded_program.hpp"

#include <algorithm>

#include "models/workspace_attempts.hpp"
#include "sim/core/error.hpp"

namespace vramlab {

using Kind = RecordedOp::Kind;

RecordedSlots::RecordedSlots(const RecordedSpec& spec)
    : kept(spec.kept), extras(static_cast<std::uint32_t>(spec.extras.size())) {
  std::int64_t live = 0;
  for (const std::int64_t entry : spec.build) live += entry > 0 ? 1 : -1;
  built = static_cast<std::uint32_t>(live);
}

RecordedProgramWriter::RecordedProgramWriter(const RecordedSpec& spec, const RecordedConditions& conditions,
                                             std::optional<std::size_t> shape)
    : spec_(spec),
      values_(spec, conditions),
      neighbours_(spec, values_),
      slots_(spec),
      writer_(slots_.all()),
      rounds_(spec.tensors.size()),
      outside_used_(spec.program.size(), 0),
      old_is_freed_(spec.kept, false) {
  writer_.reserve(spec.program.size());
  for (const RecordedGroup& group : spec.groups) {
    occurs_.push_back(shape ? (group.in >> *shape & 1) != 0 : neighbours_.occurs(group));
  }
  for (const RecordedTable& table : spec.tables) table_sizes_.push_back(neighbours_.size(table));
}

StepProgram RecordedProgramWriter::write() {
  for (std::size_t at = 0; at < spec_.program.size(); ++at) {
    if (spec_.program[at].kind == Kind::loop) {
      at = write_loop(at);
    } else {
      perform(at, 0);
    }
  }
  drop_what_is_left();
  StepProgram program = writer_.finish();
  program.duration = spec_.time.duration(values_.monomials());
  program.workspace_refusals = spec_.workspace_refusals;
  return program;
}

// Returns the place of the loop's end.
std::size_t RecordedProgramWriter::write_loop(std::size_t begin) {
  const RecordedLoop& loop = spec_.loops[spec_.program[begin].what];
  std::size_t end = begin + 1;
  while (spec_.program[end].kind != Kind::end) ++end;
  const std::int64_t rounds = values_.rounds(loop);
  for (std::int64_t round = 0; round < rounds; ++round) {
    values_.enter(&loop, round);
    for (std::size_t at = begin + 1; at < end; ++at) perform(at, round);
  }
  values_.enter(nullptr, 0);
  return end;
}

void RecordedProgramWriter::perform(std::size_t at, std::int64_t round) {
  const RecordedOp& op = spec_.program[at];
  if (!occurs_[op.group]) return;
  switch (op.kind) {
    case Kind::allocate:
      allocate(op.what);
      break;
    case Kind::free:
      release(at, round);
      break;
    case Kind::ensure:
      writer_.ensure({slots_.built + slots_.kept + op.what, spec_.extras[op.what]});
      break;
    case Kind::free_kept:
      writer_.drop({slots_.built + op.what, 0});
      old_is_freed_[op.what] = true;
      break;
    case Kind::loop:
    case Kind::end:
      break;
  }
}

void RecordedProgramWriter::allocate(std::uint32_t number) {
  const RecordedTensor& tensor = spec_.tensors[number];
  const Bytes size = size_of(tensor);
  tensors_.push_back(number);
  if (tensor.kept >= 0) {
    const auto rank = static_cast<std::uint32_t>(tensor.kept);
    // parts of two recorded structures can miss the place where the old one is freed
    if (!old_is_freed_[rank]) writer_.drop({slots_.built + rank, 0});
    writer_.make_persistent({slots_.built + rank, size});
    return;
  }
  rounds_[number].push_back(tensor.workspace ? writer_.make_workspace(size, attempts_of(tensor, size))
                                             : writer_.make(size));
}

std::uint32_t RecordedProgramWriter::attempts_of(const RecordedTensor& tensor, Bytes size) {
  if (tensor.kernel < 0 || size == 0) return 0;
  const RecordedKernel& kernel = spec_.kernels[static_cast<std::size_t>(tensor.kernel)];
  ShapeSet seen = 0;
  for (const RecordedKernel::Refusal& refusal : kernel.refusals) seen |= ShapeSet{1} << refusal.shape;
  const std::size_t nearest = neighbours_.nearest(seen);
  const auto refusal = std::find_if(kernel.refusals.begin(), kernel.refusals.end(),
                                    [&](const auto& one) { return one.shape == nearest; });
  return writer_.know_attempts(
      {static_cast<std::uint32_t>(tensor.kernel), attempts_at(refusal->sizes, size)});
}

void RecordedProgramWriter::release(std::size_t at, std::int64_t round) {
  const RecordedOp& op = spec_.program[at];
  auto& made = rounds_[op.what];
  const std::int64_t rounds = static_cast<std::int64_t>(made.size());
  std::int64_t index = op.place.offset + op.place.step * round;
  // counted from the end only where the loop is over, so that all its rounds are there
  if (op.place.from_end) index = rounds - 1 + index;
  if (index >= 0 && index < rounds) {
    drop(made[static_cast<std::size_t>(index)]);
  } else if (outside_used_[at] < op.place.outside.size()) {
    auto& other = rounds_[op.place.outside[outside_used_[at]++]];
    if (!other.empty()) drop(other.back());
  }
}

void RecordedProgramWriter::drop(std::optional<Tensor>& tensor) {
  if (!tensor) return;
  writer_.drop(*tensor);
  tensor.reset();
}

// Parts of two recorded structures can leave a tensor behind that neither of them did.
void RecordedProgramWriter::drop_what_is_left() {
  for (auto& rounds : rounds_) {
    for (auto& tensor : rounds) drop(tensor);
  }
}

Bytes RecordedProgramWriter::size_of(const RecordedTensor& tensor) const {
  if (tensor.size < 0) return table_sizes_[static_cast<std::size_t>(-1 - tensor.size)];
  const auto size = spec_.forms[static_cast<std::size_t>(tensor.size)].value(values_.monomials());
  if (!size) throw InputError("", "a size at these parameters exceeds 2^62 bytes. Take smaller values.");
  return *size;
}

}  // namespace vramlab
