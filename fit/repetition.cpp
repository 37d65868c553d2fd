#include "fit/repetition.hpp"

#include <algorithm>

namespace vramlab {

ActionSequence::ActionSequence(const ShapeProgram& program) {
  using Kind = RecordedOp::Kind;
  std::int64_t allocations = 0;
  for (const RecordedOp& op : program.ops) {
    if (op.kind == Kind::ensure) continue;
    const bool allocates = op.kind == Kind::allocate;
    const bool plain = allocates ? program.allocations[op.what].kept < 0 : op.kind == Kind::free;
    actions_.push_back({allocates, plain, op.what, allocations});
    allocations += allocates ? 1 : 0;
  }
}

bool ActionSequence::matches(std::size_t at, std::size_t period) const {
  if (at + period >= actions_.size()) return false;
  const Action& one = actions_[at];
  const Action& next = actions_[at + period];
  return one.repeats && next.repeats && one.allocates == next.allocates;
}

std::vector<Repetition> ActionSequence::runs(std::size_t period, std::size_t least) const {
  std::vector<Repetition> found;
  std::size_t start = 0;
  const auto close = [&](std::size_t end) {
    const std::size_t rounds = (end - start + period) / period;
    if (end > start && rounds >= least) found.push_back({start, period, rounds});
  };
  for (std::size_t at = 0; at + period < actions_.size(); ++at) {
    if (!matches(at, period)) {
      close(at);
      start = at + 1;
    } else if (!actions_[at].allocates && at >= start + period &&
               shift(at - period, period) != shift(at, period)) {
      close(at);
      start = at - period + 1;
    }
  }
  if (actions_.size() > period) close(actions_.size() - period);
  return found;
}

std::size_t ActionSequence::rounds_at(std::size_t start, std::size_t period) const {
  std::size_t at = start;
  while (matches(at, period) &&
         (actions_[at].allocates || at < start + period || shift(at - period, period) == shift(at, period))) {
    ++at;
  }
  return (at - start + period) / period;
}

bool ActionSequence::same_body(std::size_t start, const ActionSequence& other, std::size_t other_start,
                               std::size_t period) const {
  if (start + period > actions_.size() || other_start + period > other.actions_.size()) return false;
  const std::int64_t here = actions_[start].before;
  const std::int64_t there = other.actions_[other_start].before;
  for (std::size_t i = 0; i < period; ++i) {
    const Action& a = actions_[start + i];
    const Action& b = other.actions_[other_start + i];
    if (!a.repeats || !b.repeats || a.allocates != b.allocates) return false;
    const bool own = a.target >= here;
    if (own != (b.target >= there) || (own && a.target - here != b.target - there)) return false;
  }
  return true;
}

}  // namespace vramlab
