#include "recordings/lifetimes/recompute.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "recordings/lifetimes/scopes.hpp"

namespace vramlab {
namespace {

// What is made behind a call is freed before the call's own backward begins, but for a share of the call's
// bytes: masks and the like, which the program itself holds for longer.
constexpr Bytes kHeldForLonger = 10;
// Weights of at least so many bytes count as cast where those that are not make up less than one in so many
// bytes of their copies.
constexpr Bytes kLeastCast = 64_KiB;
constexpr Bytes kLeastOfCasts = 3;

// Blocks that the first operation behind a call makes at most: a cast, a result, and two of statistics.
constexpr std::size_t kMostOfNext = 4;
constexpr Bytes kLeastTaken = 64_KiB;  // random states and the like are no outputs

/// Finds what each call keeps.
class CallMemories {
 public:
  CallMemories(const ClientProgram& program, const std::vector<Lifetime>& lifetimes, const ProgramUses& uses,
               const ModelCalls& calls)
      : program_(program),
        lifetimes_(lifetimes),
        calls_(calls),
        scopes_(program, lifetimes),
        is_cast_(program.blocks) {
    std::map<Bytes, std::size_t> halves;
    for (ProgramBlock block = 0; block < program.blocks; ++block) {
      const Bytes bytes = lifetimes[block].requested;
      if (uses.blocks[block].category == Category::weights && bytes >= kLeastCast) ++halves[bytes / 2];
    }
    for (const Pass& pass : calls.passes) {
      saved_.push_back(saved_of(pass));
      find_casts(halves);
    }
  }

  [[nodiscard]] CallMemory find(const Call& call) const {
    CallMemory memory{.begin = call.begin, .end = call.end, .saved = {}, .inputs = {}, .outputs = {}};
    const Pass& pass = calls_.passes[call.pass];
    for (std::size_t i = call.begin; i < call.end; ++i) {
      if (!is_alloc(i)) continue;
      const Lifetime& lifetime = lifetimes_[block_at(i)];
      if (lifetime.pool != 0 || lifetime.captured) return {.begin = call.begin, .end = call.end};
      if (is_saved(pass, lifetime) && lifetime.freed >= call.end) memory.saved.push_back(block_at(i));
    }
    leave_to_next_operation(call, pass, memory);
    leave_to_others(call, memory);
    const std::optional<ProgramBlock> output = output_of(call, memory);
    if (memory.saved.empty()) return memory;
    memory.backward = pass.backward;
    for (const ProgramBlock block : memory.saved) {
      if (is_cast_[block] && std::ranges::find(memory.outputs, block) == memory.outputs.end())
        memory.casts.push_back(block);
    }
    find_moments(pass, memory);
    find_let_go(memory);
    find_inputs(pass, output, memory);
    find_taken(pass, memory);
    measure(memory);
    return memory;
  }

 private:
  /// Blocks that a pass saves, the oldest first, with the time of their frees.
  struct Saved {
    std::size_t born;
    std::size_t freed;
    Bytes bytes;
  };

  [[nodiscard]] bool is_alloc(std::size_t action) const {
    return program_.actions[action].kind == ClientAction::Kind::alloc;
  }
  [[nodiscard]] ProgramBlock block_at(std::size_t action) const { return program_.actions[action].block; }
  [[nodiscard]] static bool is_saved(const Pass& pass, const Lifetime& lifetime) {
    return lifetime.freed >= pass.backward && lifetime.freed < pass.end && lifetime.rounded > 0;
  }

  [[nodiscard]] std::vector<Saved> saved_of(const Pass& pass) const {
    std::vector<Saved> saved;
    for (std::size_t i = pass.begin; i < pass.backward; ++i) {
      if (!is_alloc(i)) continue;
      const Lifetime& lifetime = lifetimes_[block_at(i)];
      if (is_saved(pass, lifetime)) saved.push_back({i, lifetime.freed, lifetime.rounded});
    }
    return saved;
  }

  // Of the latest pass. A layer casts a weight right before it uses it, from the same line.
  void find_casts(std::map<Bytes, std::size_t> halves) {
    std::vector<ProgramBlock> found;
    Bytes missing = 0;
    const bool has_stacks = program_.stacks.size() > 1;
    for (const Saved& one : saved_.back()) {
      const auto half = halves.find(lifetimes_[block_at(one.born)].requested);
      if (half == halves.end() || half->second == 0) continue;
      if (has_stacks && !has_stack_of_next(one.born)) continue;
      --half->second;
      found.push_back(block_at(one.born));
    }
    for (const auto& [bytes, count] : halves) missing += bytes * count;
    if (kLeastOfCasts * missing > sum(found)) return;
    for (const ProgramBlock block : found) is_cast_[block] = true;
  }

  [[nodiscard]] bool has_stack_of_next(std::size_t action) const {
    const std::uint32_t stack = program_.actions[action].detail;
    for (std::size_t i = action + 1; i < program_.actions.size() && stack != 0; ++i) {
      if (is_alloc(i)) return program_.actions[i].detail == stack;
    }
    return false;
  }

  [[nodiscard]] Bytes sum(const std::vector<ProgramBlock>& blocks) const {
    Bytes bytes = 0;
    for (const ProgramBlock block : blocks) bytes += lifetimes_[block].rounded;
    return bytes;
  }

  // An output that backward frees in one go with what is made right behind the call: the operation that saved
  // it (a normalisation, with its statistics) comes behind the call, too.
  void leave_to_next_operation(const Call& call, const Pass& pass, CallMemory& memory) const {
    std::size_t next = call.end;  // up to here its statistics are made
    for (std::size_t allocs = 0; next < pass.backward && allocs < kMostOfNext; ++next)
      allocs += is_alloc(next);
    const auto is_of_next = [&](std::size_t free) {
      const std::size_t born = lifetimes_[block_at(free)].born;
      return born >= call.end && born < next;
    };
    const auto is_free = [&](std::size_t action) {
      return program_.actions[action].kind == ClientAction::Kind::free;
    };
    std::erase_if(memory.saved, [&](ProgramBlock block) {
      const std::size_t freed = lifetimes_[block].freed;
      for (std::size_t i = freed; i-- > pass.backward && is_free(i);) {
        if (is_of_next(i)) return true;
      }
      for (std::size_t i = freed + 1; i < pass.end && is_free(i); ++i) {
        if (is_of_next(i)) return true;
      }
      return false;
    });
  }

  // Outputs that only later parts of the model save.
  void leave_to_others(const Call& call, CallMemory& memory) const {
    std::vector<Saved> later;
    for (const Saved& one : saved_[call.pass]) {
      if (one.born >= call.end) later.push_back(one);
    }
    std::ranges::sort(later, std::ranges::greater{}, &Saved::freed);
    const Bytes enough = sum(memory.saved) / kHeldForLonger;
    Bytes bytes = 0;
    std::size_t begun = 0;  // before this, the backward of later parts is not done
    for (const Saved& one : later) {
      bytes += one.bytes;
      begun = one.freed;
      if (bytes > enough) break;
    }
    if (bytes <= enough) return;
    std::erase_if(memory.saved, [&](ProgramBlock block) { return lifetimes_[block].freed < begun; });
  }

  // What is still there behind the call, and not for its own backward: the last such block. Where there is
  // none, its backward begins with its output, as that of an activation function does: what is freed first.
  [[nodiscard]] std::optional<ProgramBlock> output_of(const Call& call, CallMemory& memory) const {
    const Pass& pass = calls_.passes[call.pass];
    for (std::size_t i = call.end; i-- > call.begin;) {
      if (!is_alloc(i)) continue;
      const Lifetime& lifetime = lifetimes_[block_at(i)];
      const bool there = lifetime.freed >= call.end && lifetime.freed < pass.end;
      if (there && !std::ranges::binary_search(memory.saved, block_at(i))) return block_at(i);
    }
    if (memory.saved.empty()) return std::nullopt;
    memory.outputs.push_back(
        *std::ranges::min_element(memory.saved, {}, [&](auto block) { return lifetimes_[block].freed; }));
    return memory.outputs.front();
  }

  void find_moments(const Pass& pass, CallMemory& memory) const {
    memory.again = program_.actions.size();
    for (const ProgramBlock block : memory.saved) {
      const Lifetime& lifetime = lifetimes_[block];
      memory.stop = std::max(memory.stop, lifetime.born);
      memory.again = std::min(memory.again, lifetime.freed);
      memory.done = std::max(memory.done, lifetime.freed);
    }
    memory.again = beginning(pass, memory.again);
    for (const ProgramBlock block : memory.saved)
      memory.used.push_back(std::max(memory.again, beginning(pass, lifetimes_[block].freed)));
  }

  // Outputs stay up to the call's backward, copies of weights while forward lasts.
  void find_let_go(CallMemory& memory) const {
    const auto is_in = [](const auto& blocks, ProgramBlock block) {
      return std::ranges::find(blocks, block) != blocks.end();
    };
    memory.let_go = scopes_.let_go(memory.begin, memory.end, memory.saved);
    for (std::size_t i = 0; i < memory.saved.size(); ++i) {
      if (is_in(memory.outputs, memory.saved[i])) memory.let_go[i] = memory.again;
      if (is_in(memory.casts, memory.saved[i])) memory.let_go[i] = memory.backward;
    }
  }

  // An operation of backward allocates, and then what it needed is freed.
  [[nodiscard]] std::size_t beginning(const Pass& pass, std::size_t freed) const {
    while (freed > pass.backward && program_.actions[freed - 1].kind == ClientAction::Kind::free) --freed;
    while (freed > pass.backward && is_alloc(freed - 1)) --freed;
    return freed;
  }

  void find_inputs(const Pass& pass, const std::optional<ProgramBlock>& output, CallMemory& memory) const {
    std::optional<ProgramBlock> alike;
    bool has_alike = false;
    for (std::size_t i = pass.begin; i < memory.begin; ++i) {
      if (!is_alloc(i)) continue;
      const ProgramBlock block = block_at(i);
      const Lifetime& lifetime = lifetimes_[block];
      if (lifetime.freed < memory.begin || lifetime.outlives(program_) || lifetime.pool != 0) continue;
      const bool as_large = output && lifetime.rounded == lifetimes_[*output].rounded;
      const bool in_forward = lifetime.freed < pass.backward;
      const bool here = lifetime.freed < memory.end;
      if (here || (lifetime.freed > memory.again && lifetime.freed < memory.done))
        memory.inputs.push_back(block);
      has_alike = has_alike || (as_large && (here || !in_forward));
      if (as_large && in_forward && !here) alike = block;
    }
    if (alike && !has_alike) memory.inputs.push_back(*alike);
  }

  // Backward frees it in one go with what the call made, or after all of that.
  void find_taken(const Pass& pass, CallMemory& memory) const {
    std::size_t last = memory.begin;
    while (last > pass.begin && !is_alive_output(last - 1, memory)) --last;
    if (last == pass.begin) return;
    const ProgramBlock block = block_at(last - 1);
    const std::size_t freed = lifetimes_[block].freed;
    const auto is_own = [&](ProgramBlock own) {
      return beginning(pass, lifetimes_[own].freed) == beginning(pass, freed);
    };
    if (std::ranges::find(memory.inputs, block) == memory.inputs.end()) return;
    if (freed >= memory.again && std::ranges::any_of(memory.saved, is_own)) memory.taken.push_back(block);
  }
  [[nodiscard]] bool is_alive_output(std::size_t action, const CallMemory& memory) const {
    return is_alloc(action) && lifetimes_[block_at(action)].freed >= memory.begin &&
           lifetimes_[block_at(action)].rounded >= kLeastTaken;
  }

  void measure(CallMemory& memory) const {
    memory.bytes = sum(memory.saved) - sum(memory.outputs) - sum(memory.casts);
    for (const ProgramBlock block : memory.inputs) {
      if (lifetimes_[block].freed < memory.again) memory.input_bytes += lifetimes_[block].rounded;
    }
    Bytes held = 0;
    for (std::size_t i = memory.begin; i <= memory.stop; ++i) {
      const ClientAction& action = program_.actions[i];
      if (action.kind == ClientAction::Kind::alloc) {
        held += lifetimes_[action.block].rounded;
        memory.written += lifetimes_[action.block].rounded;
      } else if (action.kind == ClientAction::Kind::free && lifetimes_[action.block].born >= memory.begin) {
        held -= lifetimes_[action.block].rounded;
      }
      memory.most = std::max(memory.most, held);
    }
  }

  const ClientProgram& program_;
  const std::vector<Lifetime>& lifetimes_;
  const ModelCalls& calls_;
  Scopes scopes_;
  std::vector<std::vector<Saved>> saved_;  ///< by pass
  std::vector<bool> is_cast_;              ///< by block
};

/// Writes the other program.
class ProgramWriter {
 public:
  ProgramWriter(const ClientProgram& program, const std::vector<Lifetime>& lifetimes)
      : program_(program), lifetimes_(lifetimes), next_(program.blocks), dropped_(program.actions.size()) {}

  void recompute(const CallMemory& memory) {
    Copies copies;
    run_again(memory, copies, added_[memory.again].actions);
    for (std::size_t i = 0; i < memory.saved.size(); ++i)
      replace(memory.saved[i], memory.let_go[i], memory.again, copies);
    for (const ProgramBlock block : memory.inputs) {
      if (!renamed_.contains(block)) kept_[block] = std::max(kept_[block], memory.done + 1);
    }
  }

  /// `next`: the offloaded call that begins where this one ends, or null.
  void offload(const CallMemory& memory, const CallMemory* next) {
    Copies copies;
    const auto bring_back = [&](ProgramBlock block, std::size_t gone, std::size_t back) {
      added_[back].actions.push_back(copy_of_alloc(block, copies));
      replace(block, gone, back, copies);
    };
    for (std::size_t i = 0; i < memory.saved.size(); ++i) {
      const ProgramBlock block = memory.saved[i];
      const bool output = std::ranges::find(memory.outputs, block) != memory.outputs.end();
      if (output && next != nullptr) {
        bring_back(block, next->end, std::min(next->again, memory.used[i]));
      } else {
        bring_back(block, memory.let_go[i], memory.used[i]);
      }
    }
    for (const ProgramBlock block : memory.taken) {
      if (!renamed_.contains(block) && !kept_.contains(block))
        bring_back(block, memory.end, before_free(block));
    }
  }

  ClientProgram write(const std::vector<bool>& absent) {
    for (const auto& [block, until] : kept_) {
      dropped_[lifetimes_[block].freed] = true;
      added_[until].frees.push_back(free_of(block));
    }
    ClientProgram other = program_;
    other.actions.clear();
    other.shown_reserved.reset();  // of the recorded program
    other.held = {};
    other.failures.clear();  // what failed is still tried at its place
    for (std::size_t i = 0; i <= program_.actions.size(); ++i) {
      const auto here = added_.find(i);
      if (here != added_.end()) {
        other.actions.insert(other.actions.end(), here->second.frees.begin(), here->second.frees.end());
        other.actions.insert(other.actions.end(), here->second.actions.begin(), here->second.actions.end());
      }
      if (i == program_.actions.size()) break;
      if (!dropped_[i]) other.actions.push_back(renamed(program_.actions[i], i));
      if (i + 1 == program_.initial_actions) other.initial_actions = other.actions.size();
    }
    if (!absent.empty()) leave_out(absent, other);
    number(other);
    return other;
  }

 private:
  struct Added {
    std::vector<ClientAction> frees;
    std::vector<ClientAction> actions;
  };
  struct Renamed {
    std::size_t from = 0;
    ProgramBlock copy = 0;
  };
  using Copies = std::map<ProgramBlock, ProgramBlock>;

  static bool is_of_block(const ClientAction& action) {
    using enum ClientAction::Kind;
    return action.kind == alloc || action.kind == free || action.kind == record_stream ||
           action.kind == finish;
  }
  [[nodiscard]] ClientAction free_of(ProgramBlock block) const {
    return {.block = block,
            .source = program_.actions[lifetimes_[block].born].source,
            .kind = ClientAction::Kind::free};
  }
  // `block` is freed at `gone` and from `back` on it is its copy.
  void replace(ProgramBlock block, std::size_t gone, std::size_t back, const Copies& copies) {
    added_[gone].frees.push_back(free_of(block));
    renamed_[block] = {back, copies.at(block)};
  }
  // Where the operation begins after which it is freed.
  [[nodiscard]] std::size_t before_free(ProgramBlock block) const {
    std::size_t at = lifetimes_[block].freed;
    while (at > 0 && program_.actions[at - 1].kind == ClientAction::Kind::free) --at;
    while (at > 0 && program_.actions[at - 1].kind == ClientAction::Kind::alloc) --at;
    return at;
  }
  ClientAction copy_of_alloc(ProgramBlock block, Copies& copies) {
    ClientAction action = program_.actions[lifetimes_[block].born];
    copies[block] = next_;
    action.block = next_++;
    return action;
  }

  void run_again(const CallMemory& memory, Copies& copies, std::vector<ClientAction>& again) {
    for (std::size_t i = memory.begin; i <= memory.stop; ++i) {
      ClientAction action = program_.actions[i];
      if (action.kind == ClientAction::Kind::alloc) {
        again.push_back(copy_of_alloc(action.block, copies));
      } else if (is_of_block(action) && copies.contains(action.block)) {
        action.block = copies.at(action.block);
        again.push_back(action);
      }
    }
    for (const auto& [block, copy] : copies) {  // what was on its way when it stopped
      const bool saved = std::ranges::binary_search(memory.saved, block);
      if (!saved && lifetimes_[block].freed > memory.stop) again.push_back(free_of(copy, block));
    }
  }
  [[nodiscard]] ClientAction free_of(ProgramBlock copy, ProgramBlock block) const {
    ClientAction action = free_of(block);
    action.block = copy;
    return action;
  }

  [[nodiscard]] ClientAction renamed(ClientAction action, std::size_t at) const {
    if (!is_of_block(action)) return action;
    const auto found = renamed_.find(action.block);
    if (found != renamed_.end() && at >= found->second.from) action.block = found->second.copy;
    return action;
  }

  static void leave_out(const std::vector<bool>& absent, ClientProgram& other) {
    std::vector<ClientAction> kept;
    std::size_t initial = 0;
    for (std::size_t i = 0; i < other.actions.size(); ++i) {
      const ClientAction& action = other.actions[i];
      if (is_of_block(action) && action.block < absent.size() && absent[action.block]) continue;
      kept.push_back(action);
      if (i < other.initial_actions) ++initial;
    }
    other.actions = std::move(kept);
    other.initial_actions = initial;
  }

  // Blocks are numbered in the order of their allocations.
  void number(ClientProgram& other) const {
    std::vector<ProgramBlock> numbers(next_);
    other.blocks = 0;
    for (ClientAction& action : other.actions) {
      if (action.kind == ClientAction::Kind::alloc) numbers[action.block] = other.blocks++;
      if (is_of_block(action)) action.block = numbers[action.block];
    }
  }

  const ClientProgram& program_;
  const std::vector<Lifetime>& lifetimes_;
  ProgramBlock next_;
  std::map<std::size_t, Added> added_;  ///< before the action of that number
  std::vector<bool> dropped_;           ///< by action
  std::map<ProgramBlock, Renamed> renamed_;
  std::map<ProgramBlock, std::size_t> kept_;  ///< inputs, up to which action
};

}  // namespace

std::vector<CallMemory> memory_of_calls(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
                                        const ProgramUses& uses, const ModelCalls& calls) {
  const CallMemories memories(program, lifetimes, uses, calls);
  std::vector<CallMemory> found;
  found.reserve(calls.calls.size());
  for (const Call& call : calls.calls) found.push_back(memories.find(call));
  return found;
}

ClientProgram program_as_if(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
                            const std::vector<TreatedCall>& calls, const std::vector<bool>& absent) {
  ProgramWriter writer(program, lifetimes);
  std::map<std::size_t, const CallMemory*> offloaded;  // by the action they begin at
  for (const TreatedCall& call : calls) {
    if (call.treatment == Treatment::offload) offloaded.emplace(call.memory->begin, call.memory);
  }
  for (const TreatedCall& call : calls) {
    const auto next = offloaded.find(call.memory->end);
    if (call.treatment == Treatment::recompute)
      writer.recompute(*call.memory);
    else
      writer.offload(*call.memory, next == offloaded.end() ? nullptr : next->second);
  }
  return writer.write(absent);
}

}  // namespace vramlab
