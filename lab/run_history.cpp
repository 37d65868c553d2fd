#include "lab/run_history.hpp"

#include <limits>
#include <string>

#include "report/output_file.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

std::int64_t microseconds(SimTime time) { return time.count() / 1000; }

}  // namespace

RunHistory::RunHistory(ParameterSpace space, std::uint64_t max_entries)
    : space_(std::move(space)),
      history_(max_entries == 0 ? std::numeric_limits<std::size_t>::max() : max_entries) {}

void RunHistory::step_begins(std::int64_t iteration, const Point& point, SimTime now) {
  history_.set_time_us(microseconds(now));
  std::string name = "iteration " + std::to_string(iteration);
  for (std::size_t i = 0; i < point.size(); ++i) {
    name += ", " + space_.parameters[i].name + ' ' + std::to_string(point[i]);
  }
  annotations_.push_back({std::move(name), true, 0, microseconds(now)});
}

void RunHistory::step_ends(StepResult /*result*/, SimTime now) {
  history_.set_time_us(microseconds(now));  // for what comes between steps: empty_cache(), phases
  if (annotations_.empty()) return;
  annotations_.push_back({annotations_.back().name, false, 0, microseconds(now)});
}

void RunHistory::run_ends(const CachingAllocator& allocator) {
  settings_ = allocator.settings();
  end_ = snapshot_of(allocator);
}

// The entries of a step carry the time at which it began.
SegmentMap RunHistory::map() const {
  const std::vector<TraceEntry> entries = history_.entries();
  SegmentMap map = segment_map(entries);
  std::size_t at = 0;
  for (const SnapshotAnnotation& annotation : annotations_) {
    if (!annotation.start) continue;
    while (at < entries.size() && entries[at].time_us < annotation.time_us) ++at;
    map.marks.push_back({at, annotation.name});
  }
  return map;
}

void RunHistory::write(const std::filesystem::path& file) const {
  if (!end_) throw InternalError("the history of a run that has not ended");
  OutputFile output{file};
  SnapshotWriter writer{[&](std::string_view bytes) { output.write(bytes); }, *end_};
  writer.begin_device();
  history_.visit([&](const TraceEntry& entry) { writer.add(entry); });
  writer.finish(settings_, annotations_);
  output.commit();
}

}  // namespace vramlab
