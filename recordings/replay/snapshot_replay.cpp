#include "recordings/replay/snapshot_replay.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "recordings/snapshot/history.hpp"

namespace vramlab {
namespace {

using Action = TraceEntry::Action;

// More than any card has. Stands for the card where no truth file tells its size, on which only the length of
// reserved ranges depends (R5.2); and keeps the counters of a made-up file from running over.
constexpr Bytes kMostMemory = Bytes{1} << 42;
constexpr Bytes kAnything = Bytes{1} << 60;  // a limit that refuses and collects nothing

const std::vector<TraceEntry>& trace_of(const TorchSnapshot& snapshot, int device) {
  require_history(snapshot, device);
  return snapshot.traces[static_cast<std::size_t>(device)];
}

}  // namespace

void SnapshotReplay::Recorder::on_event(const AllocatorEvent& event) {
  events.push_back(event);
  using A = AllocatorEvent::Action;
  if (event.action != A::segment_free && event.action != A::segment_unmap) return;
  ++releases;
  if (after_release) after_release();
}

void SnapshotReplay::Recorder::clear() {
  events.clear();
  releases = 0;
}

std::optional<Address> SnapshotReplay::Refusal::reserve(Bytes size) {
  return active ? std::nullopt : SegmentAdaptor::reserve(size);
}

bool SnapshotReplay::Refusal::map(Address address, Bytes size) {
  return !active && SegmentAdaptor::map(address, size);
}

SnapshotReplay::SnapshotReplay(const TorchSnapshot& snapshot, int device, SnapshotReplayOptions options)
    : snapshot_(snapshot),
      trace_(trace_of(snapshot, device)),
      options_(options),
      pool_uses_(find_pool_uses(snapshot, device)),
      next_unknown_stream_(std::numeric_limits<StreamId>::max()) {
  result_.device = device;
  result_.operations = trace_.size();
  result_.captures = pool_uses_.size();
  make_allocator();
  if (reserved_at_start(snapshot, device) > 0) {
    start_from_rebuilt();
  } else {
    require_whole_history(snapshot, device);
  }
  list_approximations();
  cut_at_marks();
}

void SnapshotReplay::make_allocator() {
  const TruthFile* const truth = options_.truth;
  AllocatorOptions options;
  options.settings = recorded_settings(snapshot_, truth);
  if (options.settings.backend != AllocatorBackend::native) {
    throw InputError("/allocator_settings", "is of backend:cudaMallocAsync, which records no history.");
  }
  options.limit = options_.limit;
  if (truth != nullptr && !options.limit) options.limit = truth->limit;
  limit_known_ = truth != nullptr || options.limit;
  const Bytes total = truth != nullptr ? std::min(truth->total_memory, kMostMemory) : kMostMemory;
  segments_ = std::make_unique<RecordedSegments>(total, total);
  refusal_ = std::make_unique<Refusal>(*segments_);
  allocator_ = std::make_unique<CachingAllocator>(*refusal_, std::move(options));
  allocator_->set_listener(&recorder_);
  if (limit_known_) return;
  // A fraction of a card of unknown size is no limit that can be used. Ages count while there is one.
  const bool collects = allocator_->settings().garbage_collection_threshold > 0;
  allocator_->set_limit(collects ? std::optional(kAnything) : std::nullopt);
}

void SnapshotReplay::list_approximations() {
  const bool collects = allocator_->settings().garbage_collection_threshold > 0;
  if (!initial_.empty() && collects && allocator_->limit()) {
    result_.approximate.push_back("garbage collection ages");
  }
  if (limit_known_) return;
  const auto is_failure = [](Action action) { return action == Action::oom; };
  if (any_entry(0, trace_.size(), is_failure)) result_.approximate.push_back("failures");
  if (any_entry(0, trace_.size(), is_release)) result_.approximate.push_back("retries");
  if (collects) result_.approximate.push_back("garbage collection");
}

// Of a history that begins late, marks before its first entry may lie before its beginning.
void SnapshotReplay::cut_at_marks() {
  if (options_.truth != nullptr) {
    std::size_t entry = 0;
    for (const TruthMark& mark : options_.truth->marks) {
      while (entry < trace_.size() && trace_[entry].time_us <= mark.time_us) ++entry;
      mark_places_.push_back(entry);
      if (entry == 0 && !initial_.empty()) ++next_mark_;
    }
  }
  steps_ = cut_into_steps(trace_, mark_places_);
}

bool SnapshotReplay::any_entry(std::size_t first, std::size_t end, bool (*is_it)(Action)) const {
  const std::span entries = std::span(trace_).subspan(first, end - first);
  return std::any_of(entries.begin(), entries.end(),
                     [&](const TraceEntry& entry) { return is_it(entry.action); });
}

std::size_t SnapshotReplay::next_entry() const {
  return next_step_ < steps_.size() ? steps_[next_step_].first : trace_.size();
}

bool SnapshotReplay::step() {
  check_marks_up_to(next_entry());
  if (next_step_ == steps_.size()) return false;
  perform(steps_[next_step_++]);
  return true;
}

const SnapshotReplayResult& SnapshotReplay::run() {
  try {
    while (step()) continue;
  } catch (const AllocatorFault& fault) {
    diverge(trace_.size(), "outcome", "no error", fault.what());
  } catch (const InternalError&) {
    // Once astray, the simulation may be given the address of memory that it still holds.
    if (!result_.first_divergence) throw;
  }
  check_final_state();
  result_.pending_frees = pending_.size();
  return result_;
}

void SnapshotReplay::perform(const TraceStep& step) {
  recorder_.clear();
  begin_pool_uses(step);
  if (step.is_request()) {
    request(step);
  } else {
    lead_without_request(step);
    if (step.kind != TraceStep::Kind::none) free(step);
  }
  forget_completed();
  check_entries(step);
  end_pool_uses(step);
}

// --- Frees ---

// Nobody recorded which stream a deferred free waited for. Each gets one of its own, so that they complete in
// the recorded order.
void SnapshotReplay::free(const TraceStep& step) {
  const TraceEntry& entry = trace_[step.action];
  const auto found = live_.find(entry.address);
  if (found == live_.end()) return;  // its allocation failed in the simulation
  const BlockId block = found->second;
  live_.erase(found);
  if (step.kind == TraceStep::Kind::deferred_free && block != kNullBlock) {
    allocator_->record_stream(block, next_unknown_stream_--);
    pending_[entry.address] = block;
    ++result_.deferred_frees;
  }
  allocator_->free(block);
}

// Deferred frees that completed in this step before anything was released.
std::size_t SnapshotReplay::completed_first(const TraceStep& step) const {
  std::size_t count = 0;
  for (std::size_t i = step.first; i < step.action && !is_release(trace_[i].action); ++i) {
    if (trace_[i].action == Action::free_completed) count += pending_.count(trace_[i].address);
  }
  return count;
}

// Completes the first `count` of them.
void SnapshotReplay::complete_deferred(const TraceStep& step, std::size_t count) {
  for (std::size_t i = step.first; count > 0 && i < step.action; ++i) {
    if (trace_[i].action != Action::free_completed) continue;
    const auto found = pending_.find(trace_[i].address);
    if (found == pending_.end()) continue;
    allocator_->finish_events(found->second);
    allocator_->process_events();
    forget_completed();
    --count;
  }
}

// A release completes all of them, and their ids may name other blocks afterwards.
void SnapshotReplay::forget_completed() {
  std::erase_if(pending_, [&](const auto& entry) {
    const Block& block = allocator_->state().blocks[static_cast<BlockIndex>(entry.second)];
    return !block.live || !block.is_pending();
  });
}

void SnapshotReplay::lead_without_request(const TraceStep& step) {
  complete_deferred(step, completed_first(step));
  const std::size_t end = step.kind == TraceStep::Kind::none ? step.end : step.action;
  if (!any_entry(step.first, end, is_release)) return;
  note_empty_cache(step);
  allocator_->empty_cache();
}

// The program's own call, which gave memory back in this step.
void SnapshotReplay::note_empty_cache(const TraceStep& step) {
  std::size_t entry = step.first;
  while (entry < step.end && !is_release(trace_[entry].action)) ++entry;
  result_.empty_cache_entries.push_back(entry);
  ++result_.empty_caches;
}

// --- Private pools ---

void SnapshotReplay::begin_pool_uses(const TraceStep& step) {
  for (; next_pool_use_ < pool_uses_.size() && pool_uses_[next_pool_use_].first < step.end;
       ++next_pool_use_) {
    const PoolUse& use = pool_uses_[next_pool_use_];
    const auto known = pools_.find(use.pool);
    const std::optional<PoolId> shared = known == pools_.end() ? std::nullopt : std::optional(known->second);
    pools_[use.pool] = allocator_->begin_capture(use.stream, shared);
    open_pool_uses_.push_back(next_pool_use_);
  }
}

void SnapshotReplay::end_pool_uses(const TraceStep& step) {
  std::erase_if(open_pool_uses_, [&](std::size_t i) {
    const PoolUse& use = pool_uses_[i];
    if (use.last >= step.end) return false;
    allocator_->end_capture(pools_.at(use.pool));
    return true;
  });
}

AllocatorSettings recorded_settings(const TorchSnapshot& snapshot, const TruthFile* truth) {
  const AllocatorSettings own = allocator_settings_of(snapshot);
  return truth == nullptr || snapshot.settings.conf ? own : parse_allocator_settings(truth->conf);
}

std::vector<int> recorded_devices(const TorchSnapshot& snapshot) {
  std::vector<int> devices;
  for (std::size_t i = 0; i < snapshot.traces.size(); ++i) {
    if (!snapshot.traces[i].empty()) devices.push_back(static_cast<int>(i));
  }
  return devices;
}

SnapshotReplayResult replay_snapshot(const TorchSnapshot& snapshot, int device,
                                     const SnapshotReplayOptions& options) {
  return SnapshotReplay(snapshot, device, options).run();
}

}  // namespace vramlab
