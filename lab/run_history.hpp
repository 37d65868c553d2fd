// What the allocator did in a simulated run, as a snapshot with the steps marked in it.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "lab/segment_map.hpp"
#include "sim/workload/training_loop.hpp"
#include "trace/history_recorder.hpp"
#include "trace/snapshot_writer.hpp"

namespace vramlab {

/// Watches one run (TrainingSetup::watcher) and writes its snapshot afterwards. The entries of a step carry
/// the simulated time at which it began; each step is an annotation with its iteration and parameters.
class RunHistory : public RunWatcher {
 public:
  /// `max_entries` as in HistoryRecorder; 0 = all.
  RunHistory(ParameterSpace space, std::uint64_t max_entries);

  void on_event(const AllocatorEvent& event) override { history_.on_event(event); }
  void step_begins(std::int64_t iteration, const Point& point, SimTime now) override;
  void step_ends(StepResult result, SimTime now) override;
  void run_ends(const CachingAllocator& allocator) override;

  /// After the run. Throws InputError if the file cannot be written.
  void write(const std::filesystem::path& file) const;

  /// What there is of the history, oldest entry first, and the steps in it.
  [[nodiscard]] SegmentMap map() const;

  /// Entries that made room for newer ones.
  [[nodiscard]] std::uint64_t lost() const { return history_.lost(); }

 private:
  ParameterSpace space_;
  HistoryRecorder history_;
  std::vector<SnapshotAnnotation> annotations_;
  AllocatorSettings settings_;
  std::optional<TorchSnapshot> end_;
};

}  // namespace vramlab
