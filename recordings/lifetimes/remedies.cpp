#include "recordings/lifetimes/remedies.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace vramlab {
namespace {

using Kind = ClientAction::Kind;
using Likeness = std::tuple<std::uint32_t, Category, Bytes>;

Likeness likeness_of(const Lifetime& lifetime, const BlockUse& use) {
  if (lifetime.stack != 0) return {lifetime.stack, Category::other, 0};
  return {0, use.category, lifetime.rounded};
}

/// What a replay needs of a program.
ClientProgram without_stacks(const ClientProgram& program) {
  ClientProgram copy;
  copy.file = program.file;
  copy.device = program.device;
  copy.initial_actions = program.initial_actions;
  copy.blocks = program.blocks;
  copy.pools = program.pools;
  copy.texts = program.texts;
  copy.settings = program.settings;
  copy.segments = program.segments;
  return copy;
}

/// The actions of a program in their order, with what is moved in front of where it goes.
class Mover {
 public:
  Mover(const ClientProgram& program, const std::vector<Lifetime>& lifetimes, const std::vector<bool>& blocks)
      : program_(program), lifetimes_(lifetimes), blocks_(blocks), places_(program.actions.size()) {
    std::iota(places_.begin(), places_.end(), std::size_t{0});
  }

  /// Whether any action has another place than before.
  bool move(Remedy remedy) {
    std::size_t begin = program_.initial_actions;  // of the stretch
    bool moved = false;
    for (std::size_t i = program_.initial_actions; i < places_.size(); ++i) {
      const ClientAction& action = program_.actions[i];
      if (action.kind == Kind::mark) begin = i + 1;
      const bool goes = remedy == Remedy::earlier ? is_made(action) : is_freed(action, i, begin);
      if (!goes || i == begin) continue;
      places_[i] = begin;
      moved = true;
    }
    return moved;
  }

  /// The old places in the new order.
  [[nodiscard]] std::vector<std::size_t> order() const {
    std::vector<std::size_t> order(places_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) {
      return std::pair(places_[i], places_[i] == i);  // what is moved comes before what was there
    });
    return order;
  }

 private:
  [[nodiscard]] bool can_move(const ClientAction& action) const {
    const Lifetime& lifetime = lifetimes_[action.block];
    return blocks_[action.block] && !lifetime.captured && lifetime.pool == 0;
  }
  [[nodiscard]] bool is_made(const ClientAction& action) const {
    return action.kind == Kind::alloc && can_move(action);
  }
  [[nodiscard]] bool is_freed(const ClientAction& action, std::size_t at, std::size_t begin) const {
    if (action.kind != Kind::free || !can_move(action)) return false;
    const Lifetime& lifetime = lifetimes_[action.block];
    return lifetime.born < begin && lifetime.returned == at;  // not where another stream is waited for
  }

  const ClientProgram& program_;
  const std::vector<Lifetime>& lifetimes_;
  const std::vector<bool>& blocks_;
  std::vector<std::size_t> places_;  ///< of each action: before which of the old order it goes
};

bool names_block(Kind kind) {
  return kind == Kind::alloc || kind == Kind::free || kind == Kind::record_stream || kind == Kind::finish;
}

// Blocks are numbered in the order of their allocations.
void number_anew(ChangedProgram& changed) {
  std::vector<ProgramBlock> numbers(changed.program.blocks);
  for (ClientAction& action : changed.program.actions) {
    if (action.kind == Kind::alloc) {
      numbers[action.block] = static_cast<ProgramBlock>(changed.original.size());
      changed.original.push_back(action.block);
    }
    if (names_block(action.kind)) action.block = numbers[action.block];
  }
}

}  // namespace

std::vector<bool> blocks_like(const std::vector<Lifetime>& lifetimes, const std::vector<BlockUse>& uses,
                              const std::vector<ProgramBlock>& some) {
  std::set<Likeness> kinds;
  for (const ProgramBlock block : some) kinds.insert(likeness_of(lifetimes[block], uses[block]));
  std::vector<bool> like(lifetimes.size());
  for (std::size_t i = 0; i < like.size(); ++i)
    like[i] = lifetimes[i].rounded > 0 && kinds.contains(likeness_of(lifetimes[i], uses[i]));
  return like;
}

std::optional<ChangedProgram> changed(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
                                      Remedy remedy, const std::vector<bool>& blocks, std::size_t action) {
  ChangedProgram changed{.program = without_stacks(program), .original = {}, .action = action};
  std::vector<ClientAction>& actions = changed.program.actions;
  if (remedy == Remedy::pool) {
    const ProgramPool pool = ++changed.program.pools;
    actions.push_back({.pool = pool, .kind = Kind::pool_new});
    ++changed.program.initial_actions;
    ++changed.action;
    bool any = false;
    for (ClientAction one : program.actions) {
      const bool given = one.kind == Kind::alloc && blocks[one.block] && one.pool == 0;
      if (given && !lifetimes[one.block].captured) {
        one.pool = pool;
        any = true;
      }
      actions.push_back(one);
    }
    if (!any) return std::nullopt;
  } else {
    Mover mover(program, lifetimes, blocks);
    if (!mover.move(remedy)) return std::nullopt;
    for (const std::size_t old : mover.order()) {
      if (old <= action) changed.action = actions.size();  // the last of what was done by then
      actions.push_back(program.actions[old]);
    }
  }
  number_anew(changed);
  return changed;
}

}  // namespace vramlab
