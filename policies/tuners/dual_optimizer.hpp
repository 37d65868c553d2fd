// `dual-optimizer`: moves batch and lq toward a target usage of memory. Its published versions are profiles.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "policies/contract/tuner.hpp"
#include "policies/tuners/dual_optimizer_moves.hpp"
#include "policies/tuners/dual_optimizer_options.hpp"

namespace vramlab {

std::string start_line(const DualOptimizerOptions& options, const MemoryView& memory);
std::string warm_up_line(const DualOptimizerOptions& options);
std::string usage_line(const DualOptimizerOptions& options, const MemoryView& memory);
std::string warning_line(const DualOptimizerOptions& options, const MemoryView& memory);
std::string decision_line(double usage, BatchAndLq from, BatchAndLq to, const std::string& reason);
std::string period_line(const DualOptimizerOptions& options, std::int64_t iteration);

std::string decision_reason(const DualOptimizerOptions& options, Wish wish, double usage, BatchAndLq from,
                            BatchAndLq to);
std::string used_up_reason(const DualOptimizerOptions& options, double usage);
std::string snap_reason(const DualOptimizerOptions& options, BatchAndLq from, BatchAndLq to);

// These begin with "oom".
std::string recovery_reason(BatchAndLq from, const Recovery& way, std::int64_t cooldown);
std::string first_failure_reason(BatchAndLq pair);
std::string recoveries_used_up_reason(const DualOptimizerOptions& options, BatchAndLq pair);
std::string floor_reason(const DualOptimizerOptions& options, BatchAndLq pair);

// `dual-optimizer`: moves batch and lq toward a target usage of memory. Its published versions are profiles.

/// The tuner. Needs `memory.allocated`, `peak_allocated` and `total`; with `peak_after_period: keep` the
/// device's peak counter must have been reset once, at the start of the run, and never again by others.
class DualOptimizer final : public Tuner {
 public:
  /// Throws InputError if `space` has neither "batch" nor "lq", or no value within the options' bounds.
  DualOptimizer(const DualOptimizerOptions& options, const ParameterSpace& space);

  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override;

  /// peak_usage (highest usage read in the run), avg_usage (mean of the last `vram_history_size`),
  /// current_usage (allocated after the last step), target_usage, safety_margin (ratios of the total),
  /// current_batch_size, current_lq_size (as the tuner believes; 0 for a parameter the workload lacks),
  /// oom_recovery_count, adjustments (changes asked for, those after an OOM included).
  [[nodiscard]] std::vector<Statistic> statistics() const override;

  /// Usage of the last `vram_history_size` successful steps, oldest first; ratios of the total.
  [[nodiscard]] const std::deque<double>& usage_history() const { return history_; }

  /// The usage that the next evaluation will rest on so far; ratio of the total.
  [[nodiscard]] double period_peak() const { return period_peak_; }

 private:
  void observe(const TunerQuestion& question, const Observation& observation, TunerAnswer& answer);
  void read_usage(const MemoryView& memory);
  void recover(const TunerQuestion& question, TunerAnswer& answer);
  void evaluate(const TunerQuestion& question, const Observation& observation, TunerAnswer& answer);
  void end_period(bool changed, const MemoryView& memory, TunerAnswer& answer);
  bool snap(const TunerQuestion& question, TunerAnswer& answer);
  bool ends_here(BatchAndLq now, const Recovery& way, TunerAnswer& answer) const;
  [[nodiscard]] bool adjustments_used_up() const;
  [[nodiscard]] BatchAndLq believed(const Point& point) const;

  DualOptimizerOptions options_;
  PairView view_;
  PairMemory memory_;
  std::optional<BatchAndLq> tracked_;  ///< set while belief and run differ (oom_double_halving)
  BatchAndLq current_;                 ///< for statistics
  std::int64_t cooldown_ = 0;          ///< steps until the next look
  double period_peak_ = 0;
  double peak_usage_ = 0;
  double current_usage_ = 0;
  std::deque<double> history_;
  std::int64_t adjustments_ = 0;
  std::int64_t recoveries_ = 0;
  std::int64_t failures_at_floor_ = 0;
  bool started_ = false;
};

}  // namespace vramlab
