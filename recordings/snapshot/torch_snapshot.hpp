// PyTorch memory snapshots: what torch.cuda.memory._dump_snapshot() writes (R11.1 to R11.8).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"
#include "recordings/input_file.hpp"
#include "recordings/snapshot/made_without_card.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/caching/allocator_settings.hpp"

namespace vramlab {

/// Number of a stack in TorchSnapshot::stacks; 0 = no frames were recorded.
using StackId = std::uint32_t;

/// A private pool as PyTorch names it: (number, 0) for a graph's, (0, number) for a MemPool's.
struct SnapshotPool {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  [[nodiscard]] bool is_default() const { return first == 0 && second == 0; }
  friend auto operator<=>(const SnapshotPool&, const SnapshotPool&) = default;
};

/// One block of a segment (R11.2).
struct SnapshotBlock {
  enum class State : std::uint8_t { active_allocated, active_pending_free, inactive };

  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;  ///< stale in inactive blocks (R8.9)
  State state{};
  StackId stack = 0;
};

/// The name PyTorch gives a state.
const char* name_of(SnapshotBlock::State state);

/// One cudaMalloc, or one mapped run of an expandable segment (R11.1).
struct SnapshotSegment {
  int device = 0;
  Address address = 0;
  Bytes total_size = 0;
  Bytes allocated_size = 0;  ///< in allocated blocks
  Bytes active_size = 0;     ///< in these and those that wait for other streams
  Bytes requested_size = 0;  ///< what was requested of the active ones
  StreamId stream = 0;
  bool large = false;
  bool expandable = false;
  SnapshotPool pool;
  StackId stack = 0;
  std::vector<SnapshotBlock> blocks;
};

/// One entry of a device's history (R11.3).
struct TraceEntry {
  enum class Action : std::uint8_t {  // up to oom those of AllocatorEvent, in its order
    alloc,
    free_requested,
    free_completed,
    segment_alloc,
    segment_free,
    segment_map,
    segment_unmap,
    oom,       ///< address = free memory of the device
    snapshot,  ///< an earlier snapshot was taken; size = all active bytes
    other,     ///< an action of a newer version
  };

  Address address = 0;
  Bytes size = 0;
  StreamId stream = 0;
  std::int64_t time_us = 0;  ///< Unix time in µs; 0 before torch 2.2
  StackId stack = 0;
  std::int32_t pool = -1;  ///< place in TorchSnapshot::pools; −1 = not recorded, as up to torch 2.11
  Action action{};
  std::uint32_t label = 0;  ///< place in TorchSnapshot::labels: the program's own words for what it did
};

/// The name PyTorch gives an action.
const char* name_of(TraceEntry::Action action);

/// One frame of a stack.
struct StackFrame {
  std::string function;
  std::string file;
  std::int64_t line = 0;

  friend auto operator<=>(const StackFrame&, const StackFrame&) = default;
};

/// The allocator settings of a snapshot (R11.8); empty = not in the file.
struct SnapshotSettings {
  std::optional<std::string> conf;             ///< last settings string
  std::optional<std::int64_t> max_split_size;  ///< bytes; −1 = unlimited
  std::optional<double> garbage_collection_threshold;
  std::optional<bool> expandable_segments;
  std::vector<std::uint64_t> roundup_power2_divisions;  ///< 16 values, or none
  std::optional<bool> trace_overflowed;           ///< the history lost its oldest entries (after torch 2.11)
  std::optional<std::int64_t> trace_max_entries;  ///< how many the history can hold
};

/// Pinned memory of the host, where it was recorded (`host_segments` and `host_traces`, after torch 2.11). It
/// is no memory of the card, and no replay needs it.
struct SnapshotHost {
  std::uint64_t segments = 0;
  Bytes bytes = 0;            ///< of all of them
  Bytes in_use = 0;           ///< in blocks that the program holds
  std::uint64_t entries = 0;  ///< of its history
};

/// Something that the program noted beside the allocator: PyTorch's `external_annotations`.
struct SnapshotAnnotation {
  std::string name;
  bool start = true;  ///< stage "START", else "END"
  int device = 0;
  std::int64_t time_us = 0;
};

struct TorchSnapshot {
  std::vector<SnapshotSegment> segments;        ///< of all devices
  std::vector<std::vector<TraceEntry>> traces;  ///< by device, oldest entry first
  SnapshotSettings settings;
  std::vector<SnapshotPool> pools{SnapshotPool{}};  ///< every private pool named anywhere; [0] = default
  std::vector<StackFrame> frames;
  std::vector<std::vector<std::uint32_t>> stacks{{}};  ///< places in `frames`, innermost first

  std::vector<SnapshotAnnotation> annotations;  ///< of all devices, as the file has them
  /// `user_metadata` of the entries, else `compile_context`; [0] = none.
  std::vector<std::string> labels{""};

  std::optional<SnapshotHost> host;
  std::uint64_t forward_stacks =
      0;  ///< entries that also name where in the forward pass their backward began

  std::optional<TorchVersion> torch;    ///< that wrote it, where somebody says so; no file of PyTorch does
  std::optional<MadeWithoutCard> made;  ///< no card took part; empty for a recording of a card
  /// What could not be read and no replay needs, one sentence each with file and place.
  std::vector<std::string> warnings;
};

/// Hears of every entry of a history as it is read, device by device.
using EntryWatch = std::function<void(std::size_t device, const TraceEntry& entry)>;

struct SnapshotReadOptions {
  bool stacks = true;                 ///< keep stack frames
  std::optional<TorchVersion> torch;  ///< becomes TorchSnapshot::torch
  EntryWatch watch = {};
};

/// What is said of a recording beside its file.
struct ReadOptions {
  std::optional<TorchVersion> torch;  ///< that wrote it
  std::optional<int> device;          ///< the only one of a snapshot that is wanted
  EntryWatch watch = {};
};

/// Reads a snapshot (plain, gzip or zstd). Unknown keys are ignored and missing ones have their defaults; a
/// plain list of segments, as torch.cuda.memory_snapshot() returns it, is read too. A bad value that no
/// replay needs (frames, times, notes, settings) is left out, with a warning. Throws InputError, with the
/// byte or the key, for what is not a snapshot.
TorchSnapshot read_torch_snapshot(const std::filesystem::path& file, const SnapshotReadOptions& options = {});
TorchSnapshot read_torch_snapshot(InputFile& file, const SnapshotReadOptions& options = {});

/// The same from the bytes of a pickle; `name` stands for the file in errors.
TorchSnapshot parse_torch_snapshot(std::string_view pickle, const std::string& name,
                                   const SnapshotReadOptions& options = {});

/// The PyTorch that wrote a snapshot.
struct WriterVersion {
  TorchVersion torch;
  const char* from = "assumed";  ///< or "inferred" from keys and fields that older versions lack, or "given"
};
WriterVersion writer_version(const TorchSnapshot& snapshot);

/// The settings that were in force when the snapshot was taken: those of its string, and over them what the
/// snapshot says itself (sticky keys of earlier strings, R9.4). What cannot be read has its default, and
/// `warnings` (null = not wanted) gets a sentence with its place.
AllocatorSettings allocator_settings_of(const TorchSnapshot& snapshot,
                                        std::vector<std::string>* warnings = nullptr);

/// What a snapshot tells beside the memory of its cards, one sentence each: a history that lost its
/// beginning, pinned memory of the host.
std::vector<std::string> snapshot_notes(const TorchSnapshot& snapshot);

/// All that could not be read of a snapshot: its own warnings, and those of its settings.
std::vector<std::string> file_warnings(const TorchSnapshot& snapshot, const std::string& file);

}  // namespace vramlab
