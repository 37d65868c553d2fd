#include "models/layers/tape.hpp"

#include <algorithm>
#include <queue>
#include <utility>

namespace vramlab::layers {

Bytes bytes_of(Number number) {
  switch (number) {
    case Number::int64:
      return 8;
    case Number::float32:
    case Number::int32:
      return 4;
    case Number::bfloat16:
    case Number::float16:
      return 2;
    case Number::byte:
      break;
  }
  return 1;
}

std::int64_t product(std::initializer_list<std::int64_t> counts) {
  constexpr std::int64_t kMost = std::int64_t{1} << 59;
  std::int64_t result = 1;
  for (const std::int64_t count : counts) {
    if (count == 0) return 0;
    result = result > kMost / count ? kMost : result * count;
  }
  return result;
}

Storage::~Storage() {
  if (!kept_) tape_.put({.kind = MemoryOpKind::free, .slot = id_});
}

void Tape::put(MemoryOp op) {
  ops_.push_back(op);
  purposes_.push_back(purpose);
}

Memory Tape::allocate(Bytes size) {
  size = std::max<Bytes>(size, 1);
  put({.kind = MemoryOpKind::allocate, .slot = next_id_, .size = size});
  return std::make_shared<Storage>(*this, next_id_++, ops_.size() - 1);
}

Value Tape::tensor(std::int64_t elements, Number number) {
  const auto size = static_cast<Bytes>(product({elements, static_cast<std::int64_t>(bytes_of(number))}));
  return {allocate(size), elements, number, {}};
}

void Tape::allocate_kept(const Kept& tensor) {
  put({.kind = MemoryOpKind::allocate, .slot = tensor.slot, .size = tensor.size});
  alive_.insert(tensor.slot);
}

void Tape::ensure_kept(const Kept& tensor) {
  put({.kind = MemoryOpKind::ensure, .slot = tensor.slot, .size = tensor.size});
}

void Tape::free_kept(const Kept& tensor) {
  put({.kind = MemoryOpKind::free, .slot = tensor.slot});
  alive_.erase(tensor.slot);
}

void Tape::keep(const Gradient& gradient, const Kept& tensor) {
  MemoryOp& made = ops_[gradient.memory->place_];
  made.slot = tensor.slot;
  purposes_[gradient.memory->place_] = Purpose::gradients;
  gradient.memory->kept_ = true;
  alive_.insert(tensor.slot);
}

void Tape::stop_early(std::size_t place) {
  std::set<std::uint32_t> freed;
  for (std::size_t i = place; i < ops_.size(); ++i) {
    if (ops_[i].kind == MemoryOpKind::free) freed.insert(ops_[i].slot);
  }
  std::size_t end = ops_.size();
  while (end > place && (ops_[end - 1].kind == MemoryOpKind::free || freed.contains(ops_[end - 1].slot)))
    --end;
  std::set<std::uint32_t> gone;
  for (std::size_t i = end; i < ops_.size(); ++i) {
    if (ops_[i].kind == MemoryOpKind::allocate) gone.insert(ops_[i].slot);
  }
  std::size_t to = end;
  for (std::size_t i = end; i < ops_.size(); ++i) {
    if (gone.contains(ops_[i].slot)) continue;
    ops_[to] = ops_[i];
    purposes_[to++] = purposes_[i];
  }
  ops_.resize(to);
  purposes_.resize(to);
}

Edge Tape::record(std::vector<Edge> inputs, Backward backward, std::uint32_t outputs) {
  bool wanted = false;
  for (const Edge& edge : inputs) wanted = wanted || edge;
  if (!recording || !wanted) return {};
  nodes_.push_back({std::move(inputs), std::move(backward), outputs, false, purpose});
  return {static_cast<std::uint32_t>(nodes_.size() - 1), 0};
}

Edge Tape::record_leaf(std::function<void(Gradient)> take) {
  Node leaf;
  leaf.backward = [take = std::move(take)](Gradients gradients) -> Gradients {
    take(std::move(gradients[0]));
    return {};
  };
  leaf.leaf = true;
  nodes_.push_back(std::move(leaf));
  return {static_cast<std::uint32_t>(nodes_.size() - 1), 0};
}

// ---- the backward pass

struct Tape::Walk {
  std::map<std::uint32_t, std::uint32_t> missing;  // by operation: users that have not been performed
  std::map<std::uint32_t, Gradients> gradients;
  // Leaves come first, then what was recorded last.
  std::priority_queue<std::pair<bool, std::uint32_t>> ready;
};

void Tape::count_users(Edge root, Walk& walk) const {
  std::vector<std::uint32_t> open{root.node};
  std::set<std::uint32_t> seen{root.node};
  while (!open.empty()) {
    const std::uint32_t number = open.back();
    open.pop_back();
    for (const Edge& edge : nodes_[number].inputs) {
      if (!edge) continue;
      ++walk.missing[edge.node];
      if (seen.insert(edge.node).second) open.push_back(edge.node);
    }
  }
}

Gradient Tape::sum(Gradient first, Gradient /*second*/) {
  if (first.is_view || first.memory.use_count() > 1) {
    Gradient total{tensor(first.elements, first.number).memory, first.elements, first.number, false};
    return total;
  }
  return first;
}

void Tape::perform(std::uint32_t number, Walk& walk) {
  const Purpose before = std::exchange(purpose, nodes_[number].purpose);
  Gradients incoming = std::move(walk.gradients[number]);
  walk.gradients.erase(number);
  const std::vector<Edge> inputs = nodes_[number].inputs;
  Backward backward = nodes_[number].backward;
  if (!nodes_[number].leaf) nodes_[number].backward = nullptr;
  // Where no gradient came nothing is computed, and what was saved goes all the same.
  const bool came =
      std::any_of(incoming.begin(), incoming.end(), [](const Gradient& one) { return one.memory; });
  Gradients outgoing = came ? backward(std::move(incoming)) : Gradients(inputs.size());
  backward = nullptr;  // what it saved goes with it
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Edge edge = inputs[i];
    if (!edge) continue;
    if (outgoing[i].memory) {
      Gradients& waiting = walk.gradients[edge.node];
      waiting.resize(nodes_[edge.node].outputs);
      Gradient& place = waiting[edge.slot];
      place = place.memory ? sum(std::move(place), std::move(outgoing[i])) : std::move(outgoing[i]);
      outgoing[i] = {};
    }
    if (--walk.missing[edge.node] == 0) walk.ready.emplace(nodes_[edge.node].leaf, edge.node);
  }
  purpose = before;
}

void Tape::backward(Edge root, Gradient gradient) {
  Walk walk;
  count_users(root, walk);
  Gradients& given = walk.gradients[root.node];
  given.resize(nodes_[root.node].outputs);
  given[root.slot] = std::move(gradient);
  walk.ready.emplace(nodes_[root.node].leaf, root.node);
  while (!walk.ready.empty()) {
    const std::uint32_t number = walk.ready.top().second;
    walk.ready.pop();
    perform(number, walk);
  }
}

// ---- the program

// Numbers of tensors become slots, which are used again once they are empty.
StepProgram Tape::finish() {
  casts.clear();
  for (Node& node : nodes_) node.backward = nullptr;
  StepProgram program;
  program.persistent_slots = kept_slots_;
  program.slots = kept_slots_;
  std::map<std::uint32_t, std::uint32_t> slots;
  std::vector<std::uint32_t> empty;
  for (MemoryOp& op : ops_) {
    if (op.slot < kept_slots_) continue;
    if (op.kind == MemoryOpKind::free) {
      const auto found = slots.find(op.slot);
      op.slot = found->second;
      empty.push_back(found->second);
      slots.erase(found);
      continue;
    }
    std::uint32_t slot = program.slots;
    if (empty.empty()) {
      ++program.slots;
    } else {
      slot = empty.back();
      empty.pop_back();
    }
    slots.emplace(op.slot, slot);
    op.slot = slot;
  }
  program.ops = std::move(ops_);
  return program;
}

}  // namespace vramlab::layers
