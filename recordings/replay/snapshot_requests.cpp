// How a replay reads a request: what led to it, and what came of it.
#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.hpp"
#include "recordings/replay/snapshot_replay.hpp"
#include "sim/memory/caching/rounding.hpp"

namespace vramlab {
namespace {

using Action = TraceEntry::Action;

// Readings of one step that are tried.
constexpr std::size_t kMostBorders = 64;

// How many of the deferred frees before a request completed at its beginning: usually all, or none, and
// otherwise rather many than few.
std::vector<std::size_t> possible_borders(std::size_t completed) {
  std::vector<std::size_t> borders{completed};
  if (completed > 0) borders.push_back(0);
  for (std::size_t count = completed; count > 1 && borders.size() < kMostBorders;) borders.push_back(--count);
  return borders;
}

}  // namespace

// What led to a request can be read in several ways. Deferred frees that completed before anything was
// released may have done so at the beginning of the request, or in a full release of its own, or some then
// and some there (R4.8, R4.11); the history shows no border. And releases are the request's own if it needs
// any in this state, else they are an explicit empty_cache (R11.13). If that would release something else,
// they are the request's own after all, for a limit or a full card that nobody recorded.
void SnapshotReplay::request(const TraceStep& step) {
  const std::size_t completed = completed_first(step);
  const bool releases = any_entry(step.first, step.action, is_release);
  const bool may_have_synchronized = completed > 0 && step.kind == TraceStep::Kind::failure;
  if (!releases && !may_have_synchronized) return settle(step, attempt(step, completed));

  const AllocatorState before = allocator_->save();
  const RecordedSegments segments_before = *segments_;
  const auto pending_before = pending_;
  const auto start_again = [&] {
    allocator_->restore(before);
    *segments_ = segments_before;
    pending_ = pending_before;
    recorder_.clear();
  };
  bool needs_release = false;
  for (const std::size_t count : possible_borders(completed)) {
    const AllocationResult result = attempt(step, count);
    if (count == completed) needs_release = released_anything();
    if (entries_match(step)) return settle(step, result);
    start_again();
  }
  const auto with_empty_cache = [&] {
    complete_deferred(step, completed);
    allocator_->empty_cache();
    return attempt(step, 0);
  };
  const bool explicit_call = releases && !needs_release;
  if (explicit_call) {
    const AllocationResult result = with_empty_cache();
    if (entries_match(step)) return note_empty_cache(step), settle(step, result);
    start_again();
  }
  if (releases && (!limit_known_ || !allocator_->limit())) {
    for (const std::size_t collected : possible_collections(releases_in(step))) {
      for (const bool by_limit : {false, true}) {
        if (by_limit && allocator_->limit()) continue;  // with garbage collection
        const auto result = attempt_forced(step, completed, collected, by_limit);
        if (result && entries_match(step)) return settle(step, *result);
        start_again();
      }
    }
  }
  if (!explicit_call) return settle(step, attempt(step, completed));
  note_empty_cache(step);
  settle(step, with_empty_cache());
}

std::size_t SnapshotReplay::releases_in(const TraceStep& step) const {
  const std::span entries = std::span(trace_).subspan(step.first, step.action - step.first);
  return static_cast<std::size_t>(std::count_if(
      entries.begin(), entries.end(), [](const TraceEntry& entry) { return is_release(entry.action); }));
}

// How many of a request's releases were garbage collection's, which comes first (R4.3).
std::vector<std::size_t> SnapshotReplay::possible_collections(std::size_t releases) const {
  if (!allocator_->limit()) return {0};
  std::vector<std::size_t> counts{releases, 0};
  for (std::size_t count = releases; count > 1 && counts.size() < kMostBorders;) counts.push_back(--count);
  return counts;
}

// The least limit at which garbage collection releases what the first `collected` releases of a step did.
std::optional<Bytes> SnapshotReplay::collecting_limit(const TraceStep& step, std::size_t collected) const {
  Bytes released = 0;
  for (std::size_t i = step.first; i < step.action && collected > 0; ++i) {
    if (!is_release(trace_[i].action)) continue;
    released += trace_[i].size;
    --collected;
  }
  const auto reserved = static_cast<Bytes>(allocator_->stats().reserved_bytes.all().current);
  const double threshold = allocator_->settings().garbage_collection_threshold;
  if (threshold <= 0 || released == 0 || released > reserved) return std::nullopt;
  const double limit = std::ceil(static_cast<double>(reserved - released) / threshold);
  if (limit >= static_cast<double>(kUnlimited)) return std::nullopt;
  return static_cast<Bytes>(limit);
}

// The request found no memory until everything was given back that the step gave back. The first `collected`
// releases are those of garbage collection. A limit also refuses what would need no further page (R4.9.2).
// Empty if it cannot have been so.
std::optional<AllocationResult> SnapshotReplay::attempt_forced(const TraceStep& step, std::size_t completed,
                                                               std::size_t collected, bool by_limit) {
  const std::size_t releases = releases_in(step);
  const std::optional<Bytes> no_limit = allocator_->limit();
  std::optional<AllocationResult> result;
  try {
    complete_deferred(step, completed);
    supply_bases(step);
    if (const auto limit = collecting_limit(step, collected)) allocator_->set_limit(*limit);
    if (by_limit) allocator_->set_limit(0);
    refusal_->active = !by_limit;
    recorder_.after_release = [&] {
      if (recorder_.releases == collected) allocator_->set_limit(no_limit);
      if (recorder_.releases != releases || step.kind == TraceStep::Kind::failure) return;
      refusal_->active = false;
      allocator_->set_limit(no_limit);
    };
    const TraceEntry& entry = trace_[step.action];
    result = allocator_->allocate(entry.size, entry.stream);
  } catch (const AllocatorFault&) {  // PyTorch itself would have failed
  } catch (const InternalError&) {   // what was recorded lies where something is still held
  }
  recorder_.after_release = nullptr;
  refusal_->active = false;
  allocator_->set_limit(no_limit);
  return result;
}

AllocationResult SnapshotReplay::attempt(const TraceStep& step, std::size_t completed) {
  complete_deferred(step, completed);
  supply_bases(step);
  const TraceEntry& entry = trace_[step.action];
  // A limit of the recording that is not known, or a device that was full: the failure is taken as it is.
  const bool taken = step.kind == TraceStep::Kind::failure && (!limit_known_ || !allocator_->limit());
  const bool had_room = entry.address >= segment_size(entry.size, allocator_->settings());
  const bool by_limit = taken && !allocator_->limit() && had_room;
  if (by_limit) allocator_->set_limit(0);
  refusal_->active = taken && !by_limit;
  const AllocationResult result = allocator_->allocate(entry.size, entry.stream);
  refusal_->active = false;
  if (by_limit) allocator_->set_limit(std::nullopt);
  return result;
}

bool SnapshotReplay::released_anything() const { return recorder_.releases > 0; }

// A new reserved range is mapped from its beginning on.
void SnapshotReplay::supply_bases(const TraceStep& step) {
  segments_->discard_supplied();
  bool mapped = false;
  for (std::size_t i = step.first; i < step.action; ++i) {
    if (trace_[i].action == Action::segment_alloc) segments_->supply_segment(trace_[i].address);
    if (trace_[i].action == Action::segment_map && !std::exchange(mapped, true)) {
      segments_->supply_range(trace_[i].address);
    }
  }
}

// Notes what a request gave. Its address was given by the recording if the request began a segment.
void SnapshotReplay::settle(const TraceStep& step, const AllocationResult& result) {
  const TraceEntry& entry = trace_[step.action];
  const bool given = any_entry(step.first, step.action, is_acquisition) && segments_->supplied() == 0;
  segments_->discard_supplied();
  if (!result) last_oom_ = result.oom();
  if (step.kind == TraceStep::Kind::failure) {
    ++result_.ooms;
    if (result) allocator_->free(result->block);
    return;
  }
  ++result_.allocations;
  if (result) live_[entry.address] = result->block;
  if (given && result) {
    ++result_.addresses_given;
    return;
  }
  ++result_.addresses_checked;
  if (result && result->address == entry.address) return;
  ++result_.address_mismatches;
  diverge(step.action, "address", std::to_string(entry.address),
          result ? std::to_string(result->address) : "out of memory");
}

}  // namespace vramlab
