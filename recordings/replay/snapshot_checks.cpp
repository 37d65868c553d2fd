// What a replay compares: entries, marks, OOM texts and the final state.
#include <optional>
#include <string>
#include <vector>

#include "recordings/logs/oom_message.hpp"
#include "recordings/replay/snapshot_replay.hpp"
#include "recordings/snapshot/final_segments.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

using Action = TraceEntry::Action;

// Nothing for entries that the allocator's own work does not leave. The others are named as its events are.
std::optional<AllocatorEvent> event_of(const TraceEntry& entry) {
  if (entry.action > Action::oom) return std::nullopt;
  return AllocatorEvent{static_cast<AllocatorEvent::Action>(entry.action), entry.address, entry.size,
                        entry.stream};
}

bool is_segment_event(AllocatorEvent::Action action) {
  using A = AllocatorEvent::Action;
  return action == A::segment_alloc || action == A::segment_free || action == A::segment_map ||
         action == A::segment_unmap;
}

std::string text(const AllocatorEvent& event) {
  return std::string(name_of(static_cast<Action>(event.action))) + " at " + std::to_string(event.address) +
         " of " + std::to_string(event.size) + " on stream " + std::to_string(event.stream);
}

// Peaks and totals of the time before the history are lost (R11.12).
bool is_current(const std::string& counter) { return counter.ends_with(".current"); }

// Free memory of the device depends on other processes, too.
bool equal(const AllocatorEvent& recorded, const AllocatorEvent& simulated) {
  if (recorded.action != AllocatorEvent::Action::oom) return recorded == simulated;
  return recorded.action == simulated.action && recorded.size == simulated.size &&
         recorded.stream == simulated.stream;
}

}  // namespace

bool SnapshotReplay::entries_match(const TraceStep& step) const {
  std::size_t next = 0;
  for (std::size_t i = step.first; i < step.end; ++i) {
    const auto recorded = event_of(trace_[i]);
    if (!recorded) continue;
    if (next == recorder_.events.size() || !equal(*recorded, recorder_.events[next])) return false;
    ++next;
  }
  return next == recorder_.events.size();
}

void SnapshotReplay::check_entries(const TraceStep& step) {
  std::vector<AllocatorEvent>& simulated = recorder_.events;
  std::vector<std::size_t> simulated_segments;
  for (std::size_t i = 0; i < simulated.size(); ++i) {
    if (is_segment_event(simulated[i].action)) simulated_segments.push_back(i);
  }
  std::size_t next = 0;
  std::size_t next_segment = 0;
  for (std::size_t i = step.first; i < step.end; ++i) {
    const auto recorded = event_of(trace_[i]);
    if (!recorded) continue;
    if (is_segment_event(recorded->action)) {
      ++result_.segment_events_recorded;
      if (next_segment < simulated_segments.size() &&
          *recorded == simulated[simulated_segments[next_segment++]]) {
        ++result_.segment_events_matched;
      }
    }
    ++result_.entries_checked;
    const bool present = next < simulated.size();
    if (!present || !equal(*recorded, simulated[next])) {
      ++result_.entry_mismatches;
      diverge(i, "entry", text(*recorded), present ? text(simulated[next]) : "nothing");
    }
    ++next;
  }
  for (; next < simulated.size(); ++next) {
    ++result_.entry_mismatches;
    diverge(step.end - 1, "entry", "nothing", text(simulated[next]));
  }
}

void SnapshotReplay::check_marks_up_to(std::size_t place) {
  for (; next_mark_ < mark_places_.size() && mark_places_[next_mark_] <= place; ++next_mark_) {
    check_mark(options_.truth->marks[next_mark_]);
  }
}

void SnapshotReplay::check_mark(const TruthMark& mark) {
  const std::vector<std::string>& names = stat_names();
  const std::vector<std::int64_t> simulated = stat_values(allocator_->stats());
  const bool all_known = initial_.empty();
  const std::string place = " at \"" + mark.label.substr(0, mark.label.find(" OOM")) + '"';
  ++result_.marks_checked;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::optional<std::int64_t> recorded = mark.stats.at(i);
    if (!recorded || !(all_known || is_current(names[i]))) continue;
    ++result_.counters_checked;
    if (*recorded == simulated[i]) continue;
    ++result_.counter_mismatches;
    diverge(trace_.size(), names[i] + place, std::to_string(*recorded), std::to_string(simulated[i]));
  }
  check_oom_text(mark);
  last_oom_.reset();
}

void SnapshotReplay::check_oom_text(const TruthMark& mark) {
  constexpr std::string_view kBefore = "OOM ";
  const std::size_t start = mark.label.find(kBefore);
  if (start == std::string::npos) return;
  // Of a history that begins late, the failure may lie before its beginning.
  if (!initial_.empty() && !last_oom_ && result_.ooms == 0) return;
  const std::string_view recorded = std::string_view(mark.label).substr(start + kBefore.size());
  ++result_.oom_texts_checked;
  bool equal = last_oom_.has_value();
  if (!last_oom_) diverge(trace_.size(), "outcome", "out of memory", "allocated");
  if (last_oom_) {
    for (const auto& difference : compare_oom_figures(recorded, oom_message(*last_oom_))) {
      equal = false;
      diverge(trace_.size(), difference.figure, difference.recorded, difference.simulated);
    }
  }
  if (!equal) ++result_.oom_text_mismatches;
}

std::map<PoolId, SnapshotPool> SnapshotReplay::pools() const {
  std::map<PoolId, SnapshotPool> pools;
  for (const auto& [recorded, simulated] : pools_) pools[simulated] = recorded;
  return pools;
}

void SnapshotReplay::check_final_state() {
  const SegmentComparison comparison =
      compare_segments(snapshot_.segments, result_.device, *allocator_, pools(), initial_.empty());
  result_.segments_checked = comparison.segments;
  result_.segment_mismatches = comparison.segment_mismatches;
  result_.blocks_checked = comparison.blocks;
  result_.block_mismatches = comparison.block_mismatches;
  if (const auto& first = comparison.first) {
    diverge(trace_.size(), first->what, first->recorded, first->simulated);
  }
}

void SnapshotReplay::diverge(std::size_t entry, const std::string& what, const std::string& recorded,
                             const std::string& simulated) {
  if (result_.first_divergence) return;
  const char* kind = entry < trace_.size() ? name_of(trace_[entry].action) : "";
  result_.first_divergence = Divergence{entry, kind, what, recorded, simulated, describe_state(*allocator_)};
}

}  // namespace vramlab
