// What a program asked of its allocator, in order, whatever allocator served it: the input of what-if
// replays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "recordings/snapshot/held_state.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/caching/allocator_settings.hpp"
#include "sim/memory/caching/allocator_state.hpp"
#include "sim/memory/segments/driver.hpp"

namespace vramlab {

/// Number of an allocation of a program, dense from 0 in the order of the `alloc` actions. Never used again.
using ProgramBlock = std::uint32_t;

/// Number of a private pool of a program, dense from 1; 0 = no pool of its own: the default pools, or the one
/// that a capture on the request's stream fills.
using ProgramPool = std::uint32_t;

/// One thing the program did. Which members mean something depends on the kind; the others are 0.
struct ClientAction {
  enum class Kind : std::uint8_t {
    alloc,          ///< block, bytes, stream, pool (inside use_mem_pool), detail = StackId
    free,           ///< block; deferred if other streams were recorded for it
    record_stream,  ///< block, stream = the other one
    finish,         ///< block: whatever its deferred free waits for is done (R3.8)
    attempt,  ///< bytes, stream: a request that failed in the recording; bytes are rounded already (R4.10)
    sync,     ///< every stream has done all its work, or only `stream` where detail = 1
    empty_cache,
    reset_peak,
    settings,       ///< detail = place in `texts` of the string, parsed over the settings in force (R9.4)
    pool_new,       ///< pool: a MemPool, with options = PoolKind in `detail`
    pool_del,       ///< pool: the MemPool object dies, or the graph that filled it is reset
    capture_begin,  ///< stream, pool (a new one at its first use)
    capture_end,    ///< pool
    mark,           ///< detail = place in `texts` of its name
  };

  Bytes bytes = 0;
  StreamId stream = 0;
  ProgramBlock block = 0;
  ProgramPool pool = 0;
  std::uint32_t detail = 0;
  std::uint32_t source = 0;  ///< where it was read: line of a script, entry of a history
  Kind kind{};

  friend bool operator==(const ClientAction&, const ClientAction&) = default;
};

/// The name of a kind, as scripts write it.
const char* name_of(ClientAction::Kind kind);

/// Options of a MemPool (detail of pool_new).
enum class PoolKind : std::uint32_t { plain, use_on_oom, no_split };

/// The options that a pool_new asks for.
PoolOptions pool_options(const ClientAction& pool_new);

/// The ordered actions of one program on one device.
///
/// Blocks that were live before a recording began come first, as `alloc` actions in the order of their
/// addresses: the first `initial_actions` actions (which may also make pools). Under other settings they
/// simply are allocations that came first.
struct ClientProgram {
  std::string file;  ///< where it was read
  int device = 0;
  std::vector<ClientAction> actions;
  std::size_t initial_actions = 0;
  ProgramBlock blocks = 0;  ///< number of `alloc` actions
  ProgramPool pools = 0;    ///< number of private pools
  std::vector<std::string> texts;

  /// The settings the recording was made under; those of an empty string for a script.
  AllocatorSettings settings;
  std::optional<Bytes> limit;         ///< most bytes its allocator could reserve, where that is known
  std::optional<Bytes> room;          ///< bytes the card had for its allocator when it was full, if it was
  bool limit_inferred = false;        ///< `limit` is the largest one that explains the failures, not recorded
  std::optional<Bytes> device_total;  ///< of the card it ran on, where that is known
  bool on_windows = false;            ///< the files of its stacks are Windows paths
  /// What cudaMalloc gave the recorded program, in order; empty where the recording began late.
  std::vector<SegmentPlace> segments;
  std::uint64_t attempts = 0;  ///< number of `attempt` actions

  /// Stacks of the allocations (`detail` of alloc); empty where none were recorded. stacks[0] is empty.
  std::vector<StackFrame> frames;
  std::vector<std::vector<std::uint32_t>> stacks;  ///< places in `frames`, innermost first

  /// No card took part in the recording; empty for one of a card, and for a script.
  std::optional<MadeWithoutCard> made;
  /// What was not recorded and had to be supposed, one sentence each.
  std::vector<std::string> notes;
  /// What could not be read of the file, one sentence each with its place.
  std::vector<std::string> warnings;

  /// A request that failed in the recording: each `attempt`, with what the history says of that moment.
  struct Failure {
    std::size_t action = 0;
    Bytes device_free = 0;  ///< of the card
    Bytes live = 0;         ///< as requested, in blocks in use
    std::uint64_t live_blocks = 0;
    Bytes reserved = 0;
  };
  std::vector<Failure> failures;

  /// Where the history does not tell all: the most that the file itself shows reserved at any moment. A
  /// replay of the program that reserves less is a lower bound.
  std::optional<Bytes> shown_reserved;
  bool has_history = true;  ///< false: the history says nothing of what the program did
  HeldState held;           ///< when the snapshot was taken; empty for a script
  /// Bytes of the card outside this allocator, as the marks measured them: context, libraries, NCCL, and
  /// other processes if there were any.
  std::optional<Bytes> outside;
  const char* torch_from = "assumed";  ///< of `settings.torch`: "given" or "inferred"
  std::uint64_t skipped_entries = 0;   ///< of the history, of an action that is not known here
};

/// The name of the mark in whose stretch an action lies: the next one after it. Empty if there is none.
std::string mark_after(const ClientProgram& program, std::size_t action);

}  // namespace vramlab
