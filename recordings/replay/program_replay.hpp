// Replays a client program on the simulated allocator under any settings and on any card.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "recordings/scripts/client_program.hpp"
#include "recordings/snapshot/writer.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/caching/allocator_settings.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/memory_stats.hpp"
#include "sim/memory/others/backend_choice.hpp"
#include "sim/memory/segments/segment_source.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {

/// Stands for a card that is never full (4 TiB, more than any card has).
inline constexpr Bytes kNeverFull = Bytes{1} << 42;

/// Under what a program is replayed.
struct ReplaySetup {
  AllocatorSettings settings;
  Bytes total = kNeverFull;       ///< of the card, as cudaMemGetInfo reports it
  Bytes context = kContextBytes;  ///< of the card, taken by the process's context
  std::optional<Bytes> limit;   ///< most bytes the allocator may reserve; empty = the settings decide (R9.1)
  bool probe_attempts = false;  ///< try the requests that failed in the recording, without a trace
  BackendChoice backend{};      ///< what serves the program; not native: no attempts are probed
  bool until_oom = false;       ///< nothing after a failed request is of interest, a probed one included
};

/// The figures at one `mark`; bytes and counters as torch.cuda.memory_stats() has them.
struct MarkFigures {
  std::string text;
  MemoryStats stats;
};

/// A request of the program that failed.
struct FailedRequest {
  std::size_t action = 0;  ///< place in ClientProgram::actions
  OutOfMemory oom;
};

/// What became of a program. Peaks are those of PyTorch's counters: since the last reset_peak, if any.
struct ProgramOutcome {
  MemoryStats stats;       ///< at the end
  std::uint64_t ooms = 0;  ///< requests of the program that failed; their later frees are ignored
  std::optional<FailedRequest> first_oom;
  std::optional<std::string>
      fault;  ///< an error of PyTorch itself ended the program (R4.7); figures up to it
  /// Of each of the recording's failed requests, whether it would succeed here, tried alone at its place;
  /// empty if they were not probed.
  std::vector<bool> attempts;
  std::vector<MarkFigures> marks;

  Bytes active_at_peak = 0;    ///< active bytes when the reserved peak was first reached
  Bytes reserved_at_peak = 0;  ///< that peak
  Bytes highest_reserved = 0;  ///< of the whole run, resets or not
  Bytes highest_allocated = 0;
  std::size_t highest_allocated_at = 0;  ///< action after which it was first reached
  std::uint64_t operations = 0;          ///< allocations and frees performed
  SimTime driver_time{0};                ///< of all driver calls (R10.6: orders of magnitude)

  [[nodiscard]] std::uint64_t attempts_served() const {
    return static_cast<std::uint64_t>(std::count(attempts.begin(), attempts.end(), true));
  }
  /// No request that succeeded in the recording fails.
  [[nodiscard]] bool fits() const { return ooms == 0 && !fault; }
  /// Nor would one that failed in it fail again, as far as they were probed.
  [[nodiscard]] bool serves_all() const { return fits() && attempts_served() == attempts.size(); }
};

/// What one action left behind, to hold two replays of a program against each other.
struct ReplayedAction {
  Address address = 0;  ///< of the allocation; 0 for an action that makes none, and for one that failed
  bool failed = false;  ///< ran out of memory
  Bytes allocated = 0;
  Bytes reserved = 0;
  std::int64_t segments = 0;  ///< that the allocator holds

  friend bool operator==(const ReplayedAction&, const ReplayedAction&) = default;
};

/// A replay on memory of the caller's.
struct ReplayedProgram {
  std::vector<ReplayedAction> actions;  ///< one for each of the program's, up to a fault
  std::vector<SegmentView> segments;    ///< at the end
  ProgramOutcome outcome;               ///< without driver_time
};

/// Replays the program on `source`, e.g. real memory; `setup.total` and `setup.context` do not count. `user`
/// is told of every block; null = nobody. Throws InternalError for `setup.probe_attempts`, since real memory
/// cannot be put back.
ReplayedProgram replay_program_on(SegmentSource& source, const ClientProgram& program,
                                  const ReplaySetup& setup, BlockUser* user = nullptr);

/// A block that the program holds.
struct HeldBlock {
  Bytes size = 0;          ///< bytes of the block, at least what was requested
  std::size_t action = 0;  ///< the alloc that made it
};

/// Where a block of the program was put.
struct BlockPlace {
  Address address = 0;
  Bytes size = 0;  ///< bytes of the block; 0 = the request failed, or asked for nothing
};

/// All segments at one moment of a replay.
struct PlacedBlocks {
  std::size_t action = 0;  ///< after which
  std::vector<SegmentView> segments;
  std::vector<Bytes> pages;  ///< of each segment, what is mapped and given back at once; 0 = not expandable
  /// By the address of each block in use, or whose free waits for another stream.
  std::unordered_map<Address, ProgramBlock> blocks;
};

/// What a replay keeps beside its outcome, where it is asked for.
struct ReplayKeeps {
  /// Gets every entry, with the stack of the request where one is known and the number of the action in place
  /// of a time in µs.
  HistoryRecorder* history = nullptr;
  /// Gets what the program holds when allocated memory is first highest, in the order of the allocations.
  /// Their sizes sum up to `highest_allocated`.
  std::vector<HeldBlock>* held = nullptr;
  /// Gets the place of every block, by its number in the program.
  std::vector<BlockPlace>* places = nullptr;
  /// Gets one element for each action, up to a fault.
  std::vector<ReplayedAction>* actions = nullptr;
  /// Is filled after its `action`; stays empty if a fault comes before.
  PlacedBlocks* placed = nullptr;
  /// Sees the allocator when all is done.
  std::function<void(const CachingAllocator&)> at_end;
};

/// Replays the whole program. New segments lie where the recorded ones did for as long as the same ones are
/// asked for; after that they get addresses by the fitted policy of the driver (R10.7).
///
/// Another backend than native serves requests and frees as they come: streams, pools, captures and settings
/// mean nothing to it, requests that failed in the recording are not tried, and of `keeps` it knows `actions`
/// only. Throws InputError if the settings are of another backend than native, or the card is smaller than
/// its context.
ProgramOutcome replay_program(const ClientProgram& program, const ReplaySetup& setup,
                              const ReplayKeeps& keeps = {});

/// How far two replays of one program agree.
struct ReplayAgreement {
  std::size_t actions = 0;
  std::size_t allocations = 0;      ///< that succeeded on the card
  std::size_t equal_addresses = 0;  ///< of these, allocations with the same address
  std::size_t ooms = 0;             ///< on the card
  std::size_t equal_ooms = 0;       ///< of the actions that failed on either side, those that failed on both
  std::size_t any_ooms = 0;         ///< actions that failed on either side
  std::size_t equal_reserved = 0;   ///< actions after which reserved bytes agree
  std::size_t equal_segments = 0;   ///< actions after which the number of segments agrees
  bool equal_layout = false;        ///< every segment and block at the end
  std::optional<std::size_t> first_difference;  ///< action
  Bytes peak_reserved_card = 0;
  Bytes peak_reserved_simulated = 0;

  [[nodiscard]] bool exact() const { return !first_difference && equal_layout; }
};

/// Compares a replay on the card with one on the simulator. Where `compare_addresses` is false, addresses do
/// not count: each side has bases of its own.
ReplayAgreement compare_replays(const ReplayedProgram& card, const ReplayedProgram& simulated,
                                bool compare_addresses);

}  // namespace vramlab
