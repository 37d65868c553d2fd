#include "recordings/replay/program_replay.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "recordings/replay/backend_replay.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

using Kind = ClientAction::Kind;

Bytes current(const StatArray& stat) { return static_cast<Bytes>(stat.all().current); }

AllocatorOptions options_of(const ReplaySetup& setup) {
  if (setup.settings.backend != AllocatorBackend::native) {
    throw InputError(
        "backend:cudaMallocAsync",
        "cannot be replayed: where the driver puts its blocks is not known (vramlab verify takes "
        "them from a recording; vramlab whatif --backend cudaMallocAsync answers roughly).");
  }
  AllocatorOptions options;
  options.settings = setup.settings;
  options.limit = setup.limit;
  return options;
}

/// Who is told of a replay; null = nobody.
struct Watchers {
  HistoryRecorder* history = nullptr;
  BlockUser* user = nullptr;
  std::vector<ReplayedAction>* actions = nullptr;
  std::vector<BlockPlace>* places = nullptr;  ///< one for each block
  bool sizes = false;                         ///< of the blocks, for held_at_peak()
  PlacedBlocks* placed = nullptr;
};

/// Performs a program's actions on an allocator over any source of segments.
class ProgramReplay {
 public:
  /// `simulated` is the source, where it is one of a pretended card.
  ProgramReplay(SegmentSource& source, SimSegments* simulated, const ClientProgram& program,
                const ReplaySetup& setup, const Watchers& told)
      : program_(program),
        setup_(setup),
        told_(told),
        simulated_(simulated),
        allocator_(source, options_of(setup)),
        blocks_(program.blocks, kFailed),
        freed_at_sync_(program.blocks, -1),
        sizes_(told.sizes ? program.blocks : 0),
        pools_(program.pools + 1U) {
    allocator_.set_listener(told.history);
  }

  void run() {
    if (told_.actions != nullptr) told_.actions->reserve(program_.actions.size());
    try {
      for (std::size_t i = 0; i < program_.actions.size(); ++i) {
        allocation_ = {};
        perform(i);
        if (told_.actions != nullptr) note();
        if (told_.placed != nullptr && told_.placed->action == i) place();
        if (setup_.until_oom && has_failed()) return;
      }
    } catch (const AllocatorFault& fault) {
      outcome_.fault = fault.what();
    }
  }

  [[nodiscard]] const CachingAllocator& allocator() const { return allocator_; }

  ProgramOutcome outcome() {
    outcome_.stats = allocator_.stats();
    if (simulated_ != nullptr) outcome_.driver_time = simulated_->driver_time() - probe_time_;
    return std::move(outcome_);
  }

  [[nodiscard]] std::vector<HeldBlock> held_at_peak() const {
    std::vector<HeldBlock> held;
    if (outcome_.highest_allocated == 0) return held;
    const auto end =
        program_.actions.begin() + static_cast<std::ptrdiff_t>(outcome_.highest_allocated_at) + 1;
    std::vector<bool> freed(program_.blocks);
    for (auto action = program_.actions.begin(); action != end; ++action) {
      if (action->kind == Kind::free) freed[action->block] = true;
    }
    for (auto action = program_.actions.begin(); action != end; ++action) {
      if (action->kind != Kind::alloc || sizes_[action->block] == 0 || freed[action->block]) continue;
      held.push_back({sizes_[action->block], static_cast<std::size_t>(action - program_.actions.begin())});
    }
    return held;
  }

 private:
  // Never an id of the allocator, nor kNullBlock.
  static constexpr BlockId kFailed{0xFFFF'FFFE};

  struct PoolUse {
    PoolId id{};
    std::uint32_t graphs = 0;  ///< captures that filled it
    bool mem_pool = false;
  };

  [[nodiscard]] bool has_failed() const {
    return outcome_.ooms > 0 || (!outcome_.attempts.empty() && !outcome_.attempts.back());
  }
  [[nodiscard]] bool holds(ProgramBlock block) const {
    return blocks_[block] != kFailed && freed_at_sync_[block] < 0;
  }

  void perform(std::size_t index) {
    const ClientAction& action = program_.actions[index];
    if (told_.history != nullptr) {
      told_.history->set_time_us(static_cast<std::int64_t>(index));
      told_.history->set_stack(action.kind == Kind::alloc ? action.detail : 0);
    }
    switch (action.kind) {
      case Kind::alloc:
        return allocate(action, index);
      case Kind::free:
        return free(action.block);
      case Kind::record_stream:
        return record_stream(action);
      case Kind::finish:
        return finish(action.block);
      case Kind::attempt:
        if (setup_.probe_attempts) probe(action);
        return;
      case Kind::sync:
        if (told_.user != nullptr) told_.user->wait_for_all();  // of one stream: more than was asked
        return action.detail == 1 ? allocator_.finish_stream(action.stream) : allocator_.finish_events();
      case Kind::empty_cache:
        return allocator_.empty_cache();
      case Kind::reset_peak:
        return reset_peak();
      case Kind::settings:
        return allocator_.set_settings(program_.texts[action.detail]);
      case Kind::pool_new:
        pools_[action.pool] = {allocator_.new_mem_pool(pool_options(action)), 0, true};
        return;
      case Kind::pool_del:
        return delete_pool(pools_[action.pool]);
      case Kind::capture_begin:
        return begin_capture(action);
      case Kind::capture_end:
        return end_capture(action);
      case Kind::mark:
        outcome_.marks.push_back({program_.texts[action.detail], allocator_.stats()});
        return;
    }
  }

  void allocate(const ClientAction& action, std::size_t index) {
    ++outcome_.operations;
    if (action.pool != 0) allocator_.enter_mem_pool(pools_[action.pool].id);
    const AllocationResult result = allocator_.allocate(action.bytes, action.stream);
    if (action.pool != 0) allocator_.leave_mem_pool(pools_[action.pool].id);
    if (result) {
      blocks_[action.block] = result->block;
      allocation_.address = result->address;
      if (!sizes_.empty() && action.bytes > 0) sizes_[action.block] = allocator_.size_of(result->block);
      if (told_.places != nullptr && action.bytes > 0) {
        (*told_.places)[action.block] = {result->address, allocator_.size_of(result->block)};
      }
      if (told_.user != nullptr && result->block != kNullBlock) use(*result, action.stream);
    } else {
      allocation_.failed = true;
      ++outcome_.ooms;
      if (!outcome_.first_oom) outcome_.first_oom = FailedRequest{index, result.oom()};
    }
    note_peaks(index);
  }

  // A full release took all deferred frees for done.
  void use(const Allocation& allocation, StreamId stream) {
    const std::int64_t syncs = allocator_.stats().num_sync_all_streams;
    if (std::exchange(syncs_seen_, syncs) != syncs) told_.user->wait_for_all();
    told_.user->allocated(allocation.block, allocation.address, allocator_.size_of(allocation.block), stream);
  }

  void note() {
    const MemoryStats& stats = allocator_.stats();
    allocation_.allocated = current(stats.allocated_bytes);
    allocation_.reserved = current(stats.reserved_bytes);
    allocation_.segments = stats.segment.all().current;
    told_.actions->push_back(allocation_);
  }

  // An id is given again; what it names now is the latest block of that id.
  void place() const {
    told_.placed->segments = allocator_.segments();
    std::unordered_map<Address, Bytes> pages;
    for (const Segment& segment : allocator_.state().segments) {
      if (segment.live) pages[segment.base] = segment.page;
    }
    for (const SegmentView& view : told_.placed->segments) told_.placed->pages.push_back(pages.at(view.base));
    for (ProgramBlock block = 0; block < program_.blocks; ++block) {
      if (blocks_[block] == kFailed || blocks_[block] == kNullBlock) continue;
      const Block& record = allocator_.state().blocks[static_cast<BlockIndex>(blocks_[block])];
      if (record.live && (freed_at_sync_[block] < 0 || record.is_pending()))
        told_.placed->blocks[record.address] = block;
    }
  }

  void note_peaks(std::size_t index) {
    const MemoryStats& stats = allocator_.stats();
    if (static_cast<Bytes>(stats.reserved_bytes.all().peak) != outcome_.reserved_at_peak)
      note_reserved_peak();
    if (current(stats.allocated_bytes) > outcome_.highest_allocated) {
      outcome_.highest_allocated = current(stats.allocated_bytes);
      outcome_.highest_allocated_at = index;
    }
  }

  void note_reserved_peak() {
    const MemoryStats& stats = allocator_.stats();
    outcome_.reserved_at_peak = static_cast<Bytes>(stats.reserved_bytes.all().peak);
    outcome_.active_at_peak = current(stats.active_bytes);
    outcome_.highest_reserved = std::max(outcome_.highest_reserved, outcome_.reserved_at_peak);
  }

  void reset_peak() {
    allocator_.reset_peak_stats();
    note_reserved_peak();
  }

  void free(ProgramBlock block) {
    if (!holds(block)) return;
    ++outcome_.operations;
    freed_at_sync_[block] = allocator_.stats().num_sync_all_streams;
    if (told_.user != nullptr && blocks_[block] != kNullBlock) told_.user->freeing(blocks_[block]);
    allocator_.free(blocks_[block]);
  }

  void record_stream(const ClientAction& action) {
    if (!holds(action.block)) return;
    const BlockId block = blocks_[action.block];
    if (told_.user != nullptr && block != kNullBlock) told_.user->stream_recorded(block, action.stream);
    allocator_.record_stream(block, action.stream);
  }

  // A full release in between has waited for all streams already, and the id may be another block's now.
  void finish(ProgramBlock block) {
    if (blocks_[block] == kFailed || freed_at_sync_[block] != allocator_.stats().num_sync_all_streams) return;
    if (open_captures_ > 0) {
      finished_in_capture_.push_back(block);
      return;
    }
    allocator_.process_events();  // what was parked during a capture gets its events (R3.9)
    const Block& record = allocator_.state().blocks[static_cast<BlockIndex>(blocks_[block])];
    if (!record.live || !record.is_pending()) return;
    if (told_.user != nullptr) told_.user->wait_for(blocks_[block]);
    allocator_.finish_events(blocks_[block]);
    allocator_.process_events();
  }

  void probe(const ClientAction& action) {
    if (simulated_ == nullptr) throw InternalError("attempts are probed where memory cannot be put back");
    const AllocatorState before = allocator_.save();
    const SimSegments::State segments_before = simulated_->save();
    const SimTime time_before = simulated_->driver_time();
    allocator_.set_listener(nullptr);
    outcome_.attempts.push_back(bool{allocator_.allocate(action.bytes, action.stream)});
    allocator_.set_listener(told_.history);
    allocator_.restore(before);
    simulated_->restore(segments_before);
    probe_time_ += simulated_->driver_time() - time_before;
  }

  void delete_pool(const PoolUse& pool) {
    for (std::uint32_t i = 0; i < pool.graphs; ++i) allocator_.release_graph(pool.id);
    if (pool.mem_pool) allocator_.delete_mem_pool(pool.id);
  }

  void begin_capture(const ClientAction& action) {
    PoolUse& pool = pools_[action.pool];
    const bool made = pool.mem_pool || pool.graphs > 0;
    pool.id = allocator_.begin_capture(action.stream, made ? std::optional(pool.id) : std::nullopt);
    ++pool.graphs;
    ++open_captures_;
  }

  void end_capture(const ClientAction& action) {
    allocator_.end_capture(pools_[action.pool].id);
    if (--open_captures_ > 0) return;
    for (const ProgramBlock block : std::exchange(finished_in_capture_, {})) finish(block);
  }

  const ClientProgram& program_;
  const ReplaySetup& setup_;
  const Watchers told_;
  SimSegments* simulated_;
  CachingAllocator allocator_;
  std::vector<BlockId> blocks_;              ///< by program block
  std::vector<std::int64_t> freed_at_sync_;  ///< num_sync_all_streams at its free; −1 = not freed
  std::vector<Bytes> sizes_;                 ///< of its blocks, where they are noted; 0 = it failed
  std::vector<PoolUse> pools_;
  int open_captures_ = 0;
  std::vector<ProgramBlock> finished_in_capture_;
  std::int64_t syncs_seen_ = 0;
  SimTime probe_time_{0};
  ReplayedAction allocation_;  ///< what the action being performed did
  ProgramOutcome outcome_;
};

}  // namespace

ReplayedProgram replay_program_on(SegmentSource& source, const ClientProgram& program,
                                  const ReplaySetup& setup, BlockUser* user) {
  ReplayedProgram replayed;
  ProgramReplay replay(source, nullptr, program, setup, {.user = user, .actions = &replayed.actions});
  replay.run();
  replayed.segments = replay.allocator().segments();
  replayed.outcome = replay.outcome();
  return replayed;
}

ProgramOutcome replay_program(const ClientProgram& program, const ReplaySetup& setup,
                              const ReplayKeeps& keeps) {
  if (!setup.backend.is_native()) return replay_on_backend(program, setup, keeps.actions);
  SimulatedCard card(setup.total, setup.context);
  SimSegments segments(card, DriverAddresses::of_recording(program.segments));
  if (keeps.places != nullptr) keeps.places->assign(program.blocks, {});
  ProgramReplay replay(segments, &segments, program, setup,
                       {.history = keeps.history,
                        .actions = keeps.actions,
                        .places = keeps.places,
                        .sizes = keeps.held != nullptr,
                        .placed = keeps.placed});
  replay.run();
  if (keeps.held != nullptr) *keeps.held = replay.held_at_peak();
  if (keeps.at_end) keeps.at_end(replay.allocator());
  return replay.outcome();
}

namespace {

bool equal_blocks(const BlockView& a, const BlockView& b) {
  return a.address == b.address && a.size == b.size && a.requested == b.requested && a.state == b.state;
}

bool equal_layouts(const std::vector<SegmentView>& a, const std::vector<SegmentView>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SegmentView& x, const SegmentView& y) {
    return x.base == y.base && x.size == y.size && x.stream == y.stream && x.pool == y.pool &&
           std::equal(x.blocks.begin(), x.blocks.end(), y.blocks.begin(), y.blocks.end(), equal_blocks);
  });
}

}  // namespace

ReplayAgreement compare_replays(const ReplayedProgram& card, const ReplayedProgram& simulated,
                                bool compare_addresses) {
  ReplayAgreement agreement;
  agreement.actions = card.actions.size();
  const std::size_t both = std::min(card.actions.size(), simulated.actions.size());
  for (std::size_t i = 0; i < both; ++i) {
    const ReplayedAction& real = card.actions[i];
    ReplayedAction pretended = simulated.actions[i];
    agreement.allocations += real.address != 0 ? 1 : 0;
    agreement.equal_addresses += real.address != 0 && real.address == pretended.address ? 1 : 0;
    agreement.ooms += real.failed ? 1 : 0;
    agreement.any_ooms += real.failed || pretended.failed ? 1 : 0;
    agreement.equal_ooms += real.failed && pretended.failed ? 1 : 0;
    agreement.equal_reserved += real.reserved == pretended.reserved ? 1 : 0;
    agreement.equal_segments += real.segments == pretended.segments ? 1 : 0;
    if (!compare_addresses) pretended.address = real.address;
    if (real != pretended && !agreement.first_difference) agreement.first_difference = i;
  }
  if (card.actions.size() != simulated.actions.size() && !agreement.first_difference) {
    agreement.first_difference = both;
  }
  agreement.equal_layout = !compare_addresses || equal_layouts(card.segments, simulated.segments);
  agreement.peak_reserved_card = card.outcome.highest_reserved;
  agreement.peak_reserved_simulated = simulated.outcome.highest_reserved;
  return agreement;
}

}  // namespace vramlab
