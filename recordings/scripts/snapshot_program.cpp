#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "recordings/replay/snapshot_replay.hpp"
#include "recordings/scripts/recorded_program.hpp"
#include "recordings/snapshot/annotated_stacks.hpp"
#include "recordings/snapshot/annotations.hpp"
#include "recordings/snapshot/history.hpp"
#include "recordings/snapshot/initial_state.hpp"
#include "recordings/snapshot/stack_groups.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using Action = TraceEntry::Action;
using Kind = ClientAction::Kind;

// Of so many actions one more: blocks of before the recording, deferred frees. A longer list is grown.
constexpr std::size_t kMoreActions = 16;

class ProgramWriter {
 public:
  /// `known`: the program but for its actions.
  ProgramWriter(const TorchSnapshot& snapshot, int device, const SnapshotProgramOptions& options,
                ClientProgram known)
      : trace_(snapshot.traces.at(static_cast<std::size_t>(device))),
        stacks_(snapshot, device),
        marks_(options.marks.empty() ? own_marks(snapshot, device) : place_marks(trace_, options.marks)),
        reserved_(reserved_at_start(snapshot, device)),
        uses_(find_pool_uses(snapshot, device)),
        ends_(uses_.size(), false),
        next_unknown_stream_(std::numeric_limits<StreamId>::max()),
        program_(std::move(known)) {
    const auto actions = static_cast<std::size_t>(std::ranges::count_if(trace_, is_action));
    program_.actions.reserve(actions + actions / kMoreActions + marks_.size());
  }

  /// Puts what was in use before the recording began in front (R11.12).
  void begin_with(const InitialState& initial) {
    Bytes cached = 0;
    bool in_pools = false;
    for (const SnapshotSegment& segment : initial.segments) {
      for (const SnapshotBlock& block : segment.blocks) {
        if (block.state == SnapshotBlock::State::inactive) {
          cached += block.size;
        } else {
          add_initial(block, segment.stream);
          in_pools = in_pools || !segment.pool.is_default();
        }
      }
    }
    program_.initial_actions = program_.actions.size();
    note_initial(cached, in_pools);
  }

  ClientProgram write(const std::vector<std::size_t>& empty_caches) {
    auto next_empty_cache = empty_caches.begin();
    for (std::size_t i = 0; i < trace_.size(); ++i) {
      add_marks_before(i);
      reserved_ += reserved_change(trace_[i]);
      if (next_empty_cache != empty_caches.end() && *next_empty_cache == i) {
        add({.kind = Kind::empty_cache}, i);
        ++next_empty_cache;
      }
      begin_pool_uses(i);
      add_entry(i);
      end_pool_uses(i);
    }
    add_marks_before(trace_.size());
    return std::move(program_);
  }

 private:
  // Most frees complete in the next entry, which is no action of its own then.
  static bool is_action(const TraceEntry& entry) {
    return entry.action == Action::alloc || entry.action == Action::free_requested ||
           entry.action == Action::oom;
  }

  void add(const ClientAction& action, std::size_t entry) {
    program_.actions.push_back(action);
    program_.actions.back().source = static_cast<std::uint32_t>(entry);
  }

  void add_initial(const SnapshotBlock& block, StreamId stream) {
    const ProgramBlock number = program_.blocks++;
    add({.bytes = block.requested,
         .stream = stream,
         .block = number,
         .detail = block.stack,
         .kind = Kind::alloc},
        0);
    if (block.state == SnapshotBlock::State::active_allocated) {
      begin_life(block.address, number, block.requested);
    } else {
      add_deferral(block.address, number, 0);
      add({.block = number, .kind = Kind::free}, 0);
    }
  }

  // Which stream a deferred free waits for was not recorded; one of its own keeps its place.
  void add_deferral(Address address, ProgramBlock block, std::size_t entry) {
    add({.stream = next_unknown_stream_--, .block = block, .kind = Kind::record_stream}, entry);
    pending_[address] = block;
  }

  void note_initial(Bytes cached, bool in_pools) {
    const std::string blocks =
        std::to_string(program_.blocks) + (program_.blocks == 1 ? " block" : " blocks");
    std::vector<std::string> notes{
        program_.has_history
            ? "Recording began with " + blocks +
                  " in use; they are allocated first, in the order of their addresses. The " +
                  format_bytes(cached) + " that were cached then are not."
            : "The history says nothing of what the program asked for. Replayed is the " + blocks +
                  " in use when the snapshot was taken, in the order of the addresses."};
    if (in_pools) notes.emplace_back("Some of them lay in private pools and are replayed outside.");
    program_.notes.insert(program_.notes.begin(), notes.begin(), notes.end());
  }

  void add_marks_before(std::size_t entry) {
    for (; next_mark_ < marks_.size() && marks_[next_mark_].entry <= entry; ++next_mark_) {
      add({.detail = static_cast<std::uint32_t>(program_.texts.size()), .kind = Kind::mark}, 0);
      program_.texts.push_back(marks_[next_mark_].label);
    }
  }

  void begin_life(Address address, ProgramBlock block, Bytes requested) {
    live_[address] = {block, requested};
    live_bytes_ += requested;
  }

  void add_entry(std::size_t i) {
    const TraceEntry& entry = trace_[i];
    switch (entry.action) {
      case Action::alloc:
        begin_life(entry.address, program_.blocks, entry.size);
        return add({.bytes = entry.size,
                    .stream = entry.stream,
                    .block = program_.blocks++,
                    .detail = stacks_.at(i),
                    .kind = Kind::alloc},
                   i);
      case Action::oom:
        ++program_.attempts;
        program_.failures.push_back({program_.actions.size(), entry.address, live_bytes_, live_.size(),
                                     static_cast<Bytes>(std::max<std::int64_t>(reserved_, 0))});
        return add(
            {.bytes = entry.size, .stream = entry.stream, .detail = entry.stack, .kind = Kind::attempt}, i);
      case Action::free_requested:
        return add_free(i);
      case Action::free_completed:
        return add_finish(i);
      default:
        return;
    }
  }

  void add_free(std::size_t i) {
    const auto found = live_.find(trace_[i].address);
    if (found == live_.end()) return;
    const bool completes = i + 1 < trace_.size() && trace_[i + 1].action == Action::free_completed &&
                           trace_[i + 1].address == trace_[i].address;
    const auto [block, requested] = found->second;
    if (!completes) add_deferral(found->first, block, i);
    add({.block = block, .kind = Kind::free}, i);
    live_bytes_ -= requested;
    live_.erase(found);
  }

  void add_finish(std::size_t i) {
    const auto found = pending_.find(trace_[i].address);
    if (found == pending_.end()) return;
    add({.block = found->second, .kind = Kind::finish}, i);
    pending_.erase(found);
  }

  void begin_pool_uses(std::size_t i) {
    for (; next_use_ < uses_.size() && uses_[next_use_].first <= i; ++next_use_) {
      ProgramPool& pool = pools_[uses_[next_use_].pool];
      if (pool == 0) pool = ++program_.pools;
      add({.stream = uses_[next_use_].stream, .pool = pool, .kind = Kind::capture_begin}, i);
    }
  }

  void end_pool_uses(std::size_t i) {
    for (std::size_t use = 0; use < next_use_; ++use) {
      if (ends_[use] || uses_[use].last > i) continue;
      ends_[use] = true;
      add({.stream = uses_[use].stream, .pool = pools_.at(uses_[use].pool), .kind = Kind::capture_end}, i);
    }
  }

  const std::vector<TraceEntry>& trace_;
  AllocationStacks stacks_;
  std::vector<PlacedMark> marks_;
  std::int64_t reserved_;  ///< after the latest entry
  std::vector<PoolUse> uses_;
  std::vector<bool> ends_;  ///< uses that are over
  std::size_t next_use_ = 0;
  std::map<SnapshotPool, ProgramPool> pools_;
  struct LiveBlock {
    ProgramBlock block = 0;
    Bytes requested = 0;
  };
  std::unordered_map<Address, LiveBlock> live_;
  Bytes live_bytes_ = 0;  ///< requested of them
  std::unordered_map<Address, ProgramBlock> pending_;
  StreamId next_unknown_stream_;
  std::size_t next_mark_ = 0;
  ClientProgram program_;
};

std::vector<SegmentPlace> segment_places(const TorchSnapshot& snapshot, int device) {
  std::vector<SegmentPlace> places;
  for (const TraceEntry& entry : history_of(snapshot, device)) {
    if (entry.action == Action::segment_alloc) places.push_back({entry.address, entry.size});
  }
  return places;
}

std::optional<Bytes> smaller_of(std::optional<Bytes> a, std::optional<Bytes> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// The most that the history of a device, undone from its final segments, shows reserved.
Bytes most_reserved(const TorchSnapshot& snapshot, int device) {
  std::int64_t reserved = reserved_at_start(snapshot, device);
  std::int64_t most = reserved;
  for (const TraceEntry& entry : history_of(snapshot, device)) {
    reserved += reserved_change(entry);
    most = std::max(most, reserved);
  }
  return static_cast<Bytes>(std::max<std::int64_t>(most, 0));
}

// What the card had in use beside this allocator. Other programs come and go; the figure counts where it
// stood still in the second half of the marks.
void find_outside(const TorchSnapshot& snapshot, int device, const std::vector<StepMark>& marks,
                  ClientProgram& program) {
  constexpr std::int64_t kStill = 64 << 20;  // bytes that kernels and handles load late
  const std::span<const TraceEntry> trace = history_of(snapshot, device);
  std::vector<std::int64_t> outside;
  std::int64_t reserved = reserved_at_start(snapshot, device);
  std::size_t entry = 0;
  for (const StepMark& mark : marks) {
    for (; entry < trace.size() && trace[entry].time_us <= mark.time_us; ++entry)
      reserved += reserved_change(trace[entry]);
    if (mark.device_used) outside.push_back(static_cast<std::int64_t>(*mark.device_used) - reserved);
  }
  if (outside.size() < 2) return;  // one figure cannot show whether it stood still
  const auto half = outside.begin() + static_cast<std::ptrdiff_t>(outside.size() / 2);
  const auto [least, most] = std::minmax_element(half, outside.end());
  if (*least <= 0) {
    program.notes.push_back(
        "By the marks the card had less in use than this allocator held: their mem_get_info is not of this "
        "run, "
        "and is not used.");
  } else if (*most - *least <= kStill) {
    program.outside = static_cast<Bytes>(*most);
  } else {
    program.notes.push_back(
        "What the card held beside this allocator moved while it was recorded, by up to " +
        format_bytes(static_cast<Bytes>(*most - *least)) +
        ": other programs ran on it, so what context and libraries took is not known from the marks.");
  }
}

// Explicit empty_cache calls, found by the exact replay. If the limit that was read off the failures does not
// explain the history, the failures are taken as they are.
std::vector<std::size_t> find_empty_caches(const TorchSnapshot& snapshot, int device,
                                           const SnapshotProgramOptions& options, ClientProgram& program) {
  SnapshotReplayOptions replay{.truth = options.truth, .limit = std::nullopt};
  if (options.truth == nullptr) replay.limit = smaller_of(program.limit, program.room);
  SnapshotReplayResult result = replay_snapshot(snapshot, device, replay);
  if (result.first_divergence && replay.limit) {
    replay.limit.reset();
    result = replay_snapshot(snapshot, device, replay);
    program.notes.emplace_back(
        "The memory it had is read off its failures and does not explain all of them.");
  }
  if (result.first_divergence) {
    program.notes.emplace_back("The recording itself is not reproduced exactly (vramlab verify says where).");
    program.shown_reserved = most_reserved(snapshot, device);
  }
  if (std::find(result.approximate.begin(), result.approximate.end(), "retries") !=
      result.approximate.end()) {
    program.notes.emplace_back(
        "Releases in the history count as calls of empty_cache; whether a full card "
        "forced them was not recorded.");
  }
  return result.empty_cache_entries;
}

// Such a file says itself where the cache was emptied, and for which card it was made.
std::vector<std::size_t> note_made_without_card(const MadeWithoutCard& made, ClientProgram& program) {
  program.made = made;
  program.device_total = made.total_memory;
  program.outside.reset();  // its marks measured no card
  const std::vector<std::string> said = sentences_of(made);
  program.notes.insert(program.notes.end(), said.begin(), said.end());
  return made.empty_caches;
}

}  // namespace

ClientProgram program_of(const TorchSnapshot& snapshot, int device, const SnapshotProgramOptions& options) {
  const RecordedLimit found = recorded_limit(snapshot, device);
  ClientProgram known;
  known.device = device;
  known.limit = found.limit;
  known.limit_inferred = found.limit.has_value();
  known.room = found.room;
  if (options.truth != nullptr) {
    known.limit = options.truth->limit;
    known.limit_inferred = false;
    known.device_total = options.truth->total_memory;
  }
  const std::span<const TraceEntry> trace = history_of(snapshot, device);
  known.has_history = tells_of_program(trace);
  known.held = held_state(snapshot, device);
  known.skipped_entries = skipped_entries(trace);
  known.settings = recorded_settings(snapshot, options.truth);
  known.torch_from = writer_version(snapshot).from;
  find_outside(snapshot, device, options.measured, known);
  std::vector<std::size_t> empty_caches;
  if (snapshot.made) {  // nothing in it can be compared with a replay
    empty_caches = note_made_without_card(*snapshot.made, known);
  } else if (known.has_history) {
    empty_caches = find_empty_caches(snapshot, device, options, known);
  }
  known.frames = snapshot.frames;
  known.stacks = snapshot.stacks;
  known.on_windows = has_windows_paths(snapshot.frames);
  std::optional<InitialState> initial;
  if (reserved_at_start(snapshot, device) > 0) {
    known.shown_reserved = most_reserved(snapshot, device);
    initial = rebuild_initial_state(snapshot, device, known.settings);
  } else {
    known.segments = segment_places(snapshot, device);
  }
  ProgramWriter writer(snapshot, device, options, std::move(known));
  if (initial) writer.begin_with(*initial);
  return writer.write(empty_caches);
}

namespace {

std::vector<StepMark> marks_beside(const fs::path& file) {
  const auto marks_file = find_beside(file, ".marks.json");
  return marks_file ? read_mark_times(*marks_file) : std::vector<StepMark>{};
}

// What was noted beside the recording: a truth file says more, but its card was not alone.
SnapshotProgramOptions program_options(const fs::path& file, const std::optional<TruthFile>& truth) {
  SnapshotProgramOptions options{.truth = nullptr, .marks = marks_beside(file)};
  options.measured = options.marks;
  if (!truth) return options;
  options.truth = &*truth;
  options.marks.clear();
  for (const TruthMark& mark : truth->marks)
    options.marks.push_back({.time_us = mark.time_us, .label = mark.label});
  return options;
}

}  // namespace

std::vector<ClientProgram> snapshot_programs(InputFile& file, const ReadOptions& asked) {
  TorchSnapshot snapshot = read_torch_snapshot(file, {.torch = asked.torch, .watch = asked.watch});
  const std::optional<TruthFile> truth = truth_beside(file.path());
  if (!snapshot.torch) snapshot.torch = torch_version(truth);
  name_stacks(snapshot);
  const std::vector<std::string> warnings = file_warnings(snapshot, file.name());
  SnapshotProgramOptions options = program_options(file.path(), truth);
  const std::vector<int> devices = devices_to_answer(snapshot, asked.device, file.name());
  if (devices.size() != 1) options.measured.clear();  // the marks are of one card, and do not say of which
  std::vector<ClientProgram> programs;
  for (const int device : devices) {
    const auto place = static_cast<std::size_t>(device);
    if (snapshot.traces.size() <= place) snapshot.traces.resize(place + 1);
    try {
      programs.push_back(program_of(snapshot, device, options));
      programs.back().warnings = warnings;
      std::ranges::copy(snapshot_notes(snapshot), std::back_inserter(programs.back().notes));
    } catch (const InputError& error) {
      std::vector<Problem> problems = error.problems();
      for (Problem& problem : problems) problem.where = file.name() + ": " + problem.where;
      throw InputError(std::move(problems));
    }
    programs.back().file = file.name();
  }
  if (programs.empty()) {
    throw InputError(file.name(),
                     "the snapshot holds neither memory nor a history. Record one with "
                     "torch.cuda.memory._record_memory_history() before the first allocation.");
  }
  return programs;
}

}  // namespace vramlab
