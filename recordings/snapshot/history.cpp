#include "recordings/snapshot/history.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include <boost/icl/interval_set.hpp>

#include "core/error.hpp"
#include "sim/memory/caching/rounding.hpp"

namespace vramlab {
namespace {

namespace icl = boost::icl;
using Action = TraceEntry::Action;

// `free_completed` right after its request: nothing was deferred, or it makes no difference (R3.8).
bool completes(std::span<const TraceEntry> trace, std::size_t request) {
  return request + 1 < trace.size() && trace[request + 1].action == Action::free_completed &&
         trace[request + 1].address == trace[request].address;
}

}  // namespace

std::span<const TraceEntry> history_of(const TorchSnapshot& snapshot, int device) {
  const auto place = static_cast<std::size_t>(device);
  if (place >= snapshot.traces.size()) return {};
  return snapshot.traces[place];
}

bool frees_name_allocations(std::span<const TraceEntry> trace) {
  std::unordered_map<Address, StackId> live;
  bool equal = false;
  for (const TraceEntry& entry : trace) {
    if (entry.action == Action::alloc) live[entry.address] = entry.stack;
    if (entry.action != Action::free_requested) continue;
    const auto block = live.find(entry.address);
    if (block == live.end()) continue;
    if (block->second != entry.stack) return false;
    equal |= entry.stack != 0;
    live.erase(block);
  }
  return equal;
}

AllocationStacks::AllocationStacks(const TorchSnapshot& snapshot, int device)
    : trace_(history_of(snapshot, device)) {
  std::unordered_map<Address, StackId> at_end;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state != SnapshotBlock::State::inactive && block.stack != 0)
        at_end[block.address] = block.stack;
    }
  }
  for (std::size_t i = trace_.size(); i-- > 0 && !at_end.empty();) {
    if (trace_[i].action != Action::alloc) continue;
    const auto block = at_end.find(trace_[i].address);
    if (block == at_end.end()) continue;
    if (trace_[i].stack == 0) of_final_blocks_[i] = block->second;
    at_end.erase(block);
  }
}

StackId AllocationStacks::at(std::size_t entry) const {
  const auto known = of_final_blocks_.find(entry);
  return known == of_final_blocks_.end() ? trace_[entry].stack : known->second;
}

bool tells_of_program(std::span<const TraceEntry> trace) {
  return std::any_of(trace.begin(), trace.end(), [](const TraceEntry& entry) {
    return entry.action != Action::snapshot && entry.action != Action::other;
  });
}

std::uint64_t skipped_entries(std::span<const TraceEntry> trace) {
  return static_cast<std::uint64_t>(std::count_if(
      trace.begin(), trace.end(), [](const TraceEntry& entry) { return entry.action == Action::other; }));
}

std::vector<int> devices_to_answer(const TorchSnapshot& snapshot, std::optional<int> device,
                                   const std::string& file) {
  std::set<int> telling;
  std::set<int> holding;
  std::set<int> known;
  for (std::size_t i = 0; i < snapshot.traces.size(); ++i) {
    if (tells_of_program(snapshot.traces[i])) telling.insert(static_cast<int>(i));
  }
  for (const SnapshotSegment& segment : snapshot.segments) holding.insert(segment.device);
  if (!device) {
    const std::set<int>& chosen = telling.empty() ? holding : telling;
    return {chosen.begin(), chosen.end()};
  }
  if (telling.contains(*device) || holding.contains(*device)) return {*device};
  known.merge(telling);
  known.merge(holding);
  std::string names;
  for (const int one : known) names += (names.empty() ? "" : ", ") + std::to_string(one);
  throw InputError(file, "holds nothing of device " + std::to_string(*device) +
                             (names.empty() ? "." : "; it has " + names + '.'));
}

std::vector<TraceStep> cut_into_steps(std::span<const TraceEntry> trace, std::span<const std::size_t> cuts) {
  std::vector<TraceStep> steps;
  const auto ends_step = [](const TraceEntry& entry) {
    return entry.action == Action::alloc || entry.action == Action::oom ||
           entry.action == Action::free_requested;
  };
  const auto actions = static_cast<std::size_t>(std::ranges::count_if(trace, ends_step));
  steps.reserve(actions + cuts.size() + 1);  // of a long history growing would take twice the memory
  TraceStep open;
  const auto close = [&](TraceStep::Kind kind, std::size_t action, std::size_t end) {
    open.kind = kind;
    open.action = action;
    open.end = end;
    steps.push_back(open);
    open.first = end;
  };
  std::size_t i = 0;
  while (i < trace.size()) {
    while (!cuts.empty() && cuts.front() <= i) {
      if (open.first < i) close(TraceStep::Kind::none, i, i);
      cuts = cuts.subspan(1);
    }
    const std::size_t entry = i;
    const Action action = trace[entry].action;
    const bool completed = action == Action::free_requested && completes(trace, entry);
    i += completed ? 2 : 1;
    if (action == Action::alloc) close(TraceStep::Kind::allocation, entry, i);
    if (action == Action::oom) close(TraceStep::Kind::failure, entry, i);
    if (action == Action::free_requested)
      close(completed ? TraceStep::Kind::free : TraceStep::Kind::deferred_free, entry, i);
  }
  if (open.first < trace.size()) close(TraceStep::Kind::none, trace.size(), trace.size());
  return steps;
}

namespace {

/// A final segment of a private pool, and since when it has been there.
struct PrivateRange {
  Address end = 0;
  std::size_t since = 0;
  SnapshotPool pool;
};

class PrivateRanges {
 public:
  PrivateRanges(const TorchSnapshot& snapshot, int device, std::span<const TraceEntry> trace) {
    std::vector<std::size_t> changes;
    for (std::size_t i = 0; i < trace.size(); ++i) {
      if (is_acquisition(trace[i].action) || is_release(trace[i].action)) changes.push_back(i);
    }
    for (const SnapshotSegment& segment : snapshot.segments) {
      if (segment.device != device || segment.pool.is_default()) continue;
      const Address end = segment.address + segment.total_size;
      ranges_[segment.address] = {end, beginning_of(segment.address, end, trace, changes), segment.pool};
    }
  }

  [[nodiscard]] bool empty() const { return ranges_.empty(); }

  [[nodiscard]] std::optional<SnapshotPool> pool_at(Address address, std::size_t entry) const {
    auto range = ranges_.upper_bound(address);
    if (range == ranges_.begin()) return std::nullopt;
    --range;
    if (address >= range->second.end || entry < range->second.since) return std::nullopt;
    return range->second.pool;
  }

 private:
  // An address may have been another segment before: what counts is the first piece that stayed. If not all
  // of it was acquired since, the history begins with it.
  static std::size_t beginning_of(Address start, Address end, std::span<const TraceEntry> trace,
                                  std::span<const std::size_t> changes) {
    std::size_t beginning = trace.size();
    Bytes acquired = 0;
    for (std::size_t i = changes.size(); i-- > 0;) {
      const TraceEntry& entry = trace[changes[i]];
      if (entry.address >= end || entry.address + entry.size <= start) continue;
      if (is_release(entry.action)) return beginning;
      beginning = changes[i];
      acquired += entry.size;
    }
    return acquired < end - start ? 0 : beginning;
  }

  std::map<Address, PrivateRange> ranges_;
};

}  // namespace

std::vector<PoolUse> find_pool_uses(const TorchSnapshot& snapshot, int device) {
  const std::span<const TraceEntry> trace = history_of(snapshot, device);
  const PrivateRanges ranges(snapshot, device, trace);
  if (ranges.empty() && snapshot.pools.size() == 1) return {};

  std::vector<PoolUse> uses;
  std::map<StreamId, std::size_t> open;  // use of each stream that goes on
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const TraceEntry& entry = trace[i];
    std::optional<SnapshotPool> pool = ranges.pool_at(entry.address, i);
    if (entry.pool >= 0) pool = snapshot.pools[static_cast<std::size_t>(entry.pool)];
    const bool is_private = pool && !pool->is_default();
    if (is_release(entry.action) && !is_private) open.clear();
    if (entry.action != TraceEntry::Action::alloc) continue;

    const auto use = open.find(entry.stream);
    if (!is_private) {
      if (use != open.end()) open.erase(use);
    } else if (use != open.end() && uses[use->second].pool == *pool) {
      uses[use->second].last = i;
    } else {
      open[entry.stream] = uses.size();
      uses.push_back({*pool, entry.stream, i, i});
    }
  }
  return uses;
}

namespace {

void require_consistent(std::span<const TraceEntry> trace, const std::string& where) {
  icl::interval_set<Address> held;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const TraceEntry& entry = trace[i];
    const Address end = entry.address + entry.size;
    const bool is_range = entry.address < end;  // neither empty nor past the end of all addresses
    const auto range = icl::interval<Address>::right_open(entry.address, end);
    if (is_acquisition(entry.action)) {
      if (!is_range || icl::intersects(held, range)) {
        throw InputError(where + '/' + std::to_string(i), "acquires memory that is held already.");
      }
      held += range;
    }
    if (is_release(entry.action)) {
      if (!is_range || !icl::contains(held, range)) {
        throw InputError(where + '/' + std::to_string(i), "releases memory that is not held.");
      }
      held -= range;
    }
  }
}

}  // namespace

std::int64_t reserved_at_start(const TorchSnapshot& snapshot, int device) {
  std::int64_t reserved = 0;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == device) reserved += static_cast<std::int64_t>(segment.total_size);
  }
  for (const TraceEntry& entry : history_of(snapshot, device)) reserved -= reserved_change(entry);
  return reserved;
}

void require_history(const TorchSnapshot& snapshot, int device) {
  if (history_of(snapshot, device).empty()) {
    throw InputError("/device_traces/" + std::to_string(device),
                     "holds no history: recording was off, or the file has no such device.");
  }
}

void require_whole_history(const TorchSnapshot& snapshot, int device) {
  require_history(snapshot, device);
  const std::string where = "/device_traces/" + std::to_string(device);
  const std::int64_t reserved = reserved_at_start(snapshot, device);
  if (reserved > 0) {
    throw InputError(where, "starts with " + format_bytes(static_cast<Bytes>(reserved)) +
                                " already reserved: recording began late, or the oldest entries are lost. "
                                "This needs the whole history; record from the start of the program, with "
                                "a max_entries that is large enough.");
  }
  if (reserved < 0) {
    throw InputError(where, "acquires " + format_bytes(static_cast<Bytes>(-reserved)) +
                                " more than it releases and holds at the end: some kinds of entries were "
                                "not recorded (skip_actions), or the segments are of another run.");
  }
  require_consistent(history_of(snapshot, device), where);
}

namespace {

void lower(std::optional<Bytes>& least, Bytes value) { least = least ? std::min(*least, value) : value; }

}  // namespace

RecordedLimit recorded_limit(const TorchSnapshot& snapshot, int device) {
  RecordedLimit found;
  const AllocatorSettings settings = allocator_settings_of(snapshot);
  std::int64_t reserved = reserved_at_start(snapshot, device);
  for (const TraceEntry& entry : history_of(snapshot, device)) {
    reserved += reserved_change(entry);
    if (entry.action != TraceEntry::Action::oom || reserved < 0) continue;
    const auto held = static_cast<Bytes>(reserved);
    const Bytes wanted = segment_size(entry.size, settings);
    const Bytes device_free = entry.address;
    if (device_free < wanted) {
      lower(found.room, held + device_free);
    } else {
      lower(found.limit, held + wanted - 1);
    }
  }
  return found;
}

}  // namespace vramlab
