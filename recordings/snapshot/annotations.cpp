#include "recordings/snapshot/annotations.hpp"

#include <algorithm>

#include "recordings/snapshot/history.hpp"

namespace vramlab {
namespace {

// The first entry from `entry` on that is later than `time_us`.
std::size_t later_than(std::span<const TraceEntry> trace, std::size_t entry, std::int64_t time_us) {
  while (entry < trace.size() && trace[entry].time_us <= time_us) ++entry;
  return entry;
}

// An annotation that begins comes before the entries of its microsecond, one that ends behind them.
std::vector<PlacedMark> annotated(std::span<const TraceEntry> trace,
                                  std::vector<const SnapshotAnnotation*> annotations) {
  std::stable_sort(
      annotations.begin(), annotations.end(),
      [](const SnapshotAnnotation* a, const SnapshotAnnotation* b) { return a->time_us < b->time_us; });
  std::vector<PlacedMark> marks;
  std::vector<std::string> open;
  std::size_t entry = 0;
  std::size_t marked = 0;  // entries before the latest mark
  for (const SnapshotAnnotation* annotation : annotations) {
    entry = later_than(trace, entry, annotation->time_us - (annotation->start ? 1 : 0));
    if (annotation->start) {
      if (entry > marked) marks.push_back({entry, open.empty() ? "before " + annotation->name : open.back()});
      open.push_back(annotation->name);
    } else {
      marks.push_back({entry, annotation->name});
      const auto ended = std::find(open.rbegin(), open.rend(), annotation->name);
      if (ended != open.rend()) open.erase(std::next(ended).base());
    }
    marked = std::max(marked, entry);
  }
  if (!open.empty() && marked < trace.size()) marks.push_back({trace.size(), open.back()});
  return marks;
}

std::vector<PlacedMark> labelled(std::span<const TraceEntry> trace, const std::vector<std::string>& labels) {
  std::vector<PlacedMark> marks;
  std::uint32_t open = 0;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (trace[i].label == open) continue;
    if (i > 0) marks.push_back({i, open == 0 ? "before " + labels[trace[i].label] : labels[open]});
    open = trace[i].label;
  }
  if (open != 0) marks.push_back({trace.size(), labels[open]});
  return marks;
}

}  // namespace

std::vector<PlacedMark> place_marks(std::span<const TraceEntry> trace, const std::vector<StepMark>& marks) {
  std::vector<PlacedMark> placed;
  std::size_t entry = 0;
  for (const StepMark& mark : marks) {
    entry = later_than(trace, entry, mark.time_us);
    placed.push_back({entry, mark.label});
  }
  return placed;
}

std::vector<PlacedMark> own_marks(const TorchSnapshot& snapshot, int device) {
  const std::span<const TraceEntry> trace = history_of(snapshot, device);
  std::vector<const SnapshotAnnotation*> annotations;
  for (const SnapshotAnnotation& annotation : snapshot.annotations) {
    if (annotation.device == device) annotations.push_back(&annotation);
  }
  return annotations.empty() ? labelled(trace, snapshot.labels) : annotated(trace, std::move(annotations));
}

}  // namespace vramlab
