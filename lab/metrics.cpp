#include "lab/metrics.hpp"

#include <algorithm>

namespace vramlab {
namespace {

/// Sums over the steps of a run.
struct Totals {
  double samples = 0;
  double pixels = 0;
  double failed_s = 0;
  double peak_shares = 0;
  std::int64_t ooms = 0;
  std::int64_t errors = 0;
  std::int64_t lost = 0;
};

double share(Bytes part, Bytes total) {
  return total == 0 ? 0 : static_cast<double>(part) / static_cast<double>(total);
}

Totals add_up(const Scenario& scenario, const TrainingRun& run) {
  Totals totals;
  for (const IterationRecord& step : run.iterations) {
    totals.peak_shares += share(step.step_peak_allocated, step.memory.total);
    if (!step.kept) ++totals.lost;
    if (step.result == StepResult::error) ++totals.errors;
    if (step.result == StepResult::oom) {
      ++totals.ooms;
      totals.failed_s += to_seconds(step.duration);
    } else if (step.result == StepResult::ok && step.kept) {
      totals.samples += static_cast<double>(scenario.model->samples(step.point));
      totals.pixels += static_cast<double>(scenario.model->pixels(step.point));
    }
  }
  return totals;
}

// A policy that gives a reason has evaluated something.
std::int64_t evaluations_until(const std::vector<IterationRecord>& steps, std::int64_t iteration) {
  return std::count_if(steps.begin(), steps.end(), [&](const IterationRecord& step) {
    return step.iteration <= iteration && !step.reason.empty();
  });
}

// How often a parameter turned round: it moved one way and then, at its next move, the other.
std::int64_t direction_changes(const std::vector<Adjustment>& adjustments) {
  std::int64_t changes = 0;
  std::vector<std::int64_t> last;
  for (const Adjustment& adjustment : adjustments) {
    last.resize(adjustment.to.size());
    for (std::size_t i = 0; i < last.size(); ++i) {
      const std::int64_t step = adjustment.to[i] - adjustment.from[i];
      if (step == 0) continue;
      if (last[i] != 0 && (last[i] > 0) != (step > 0)) ++changes;
      last[i] = step;
    }
  }
  return changes;
}

}  // namespace

std::vector<Metric> training_metrics(const Scenario& scenario, const TrainingRun& run) {
  const Totals totals = add_up(scenario, run);
  const auto steps = static_cast<double>(run.iterations.size());
  const double seconds = to_seconds(run.duration);
  const Bytes total = run.iterations.empty() ? 0 : run.iterations.back().memory.total;
  const auto per_second = [&](double amount) { return seconds > 0 ? amount / seconds : 0; };
  // A rate says nothing about work that was never begun: a run that ended early keeps the share it did.
  const double begun = run.iterations.empty() ? 1
                                              : static_cast<double>(run.iterations.back().iteration) /
                                                    static_cast<double>(scenario.setup.iterations);
  const double done = scenario.objective == Objective::lq_then_batch ? 1 : begun;
  const auto last_adjustment = run.adjustments.empty() ? 0 : run.adjustments.back().iteration;
  return {
      {"iterations", steps},
      {"ooms", static_cast<double>(totals.ooms + run.phase_ooms)},
      {"allocator_ooms", static_cast<double>(run.memory.num_ooms)},
      {"alloc_retries", static_cast<double>(run.memory.num_alloc_retries)},
      {"peak_allocated_ratio", share(run.peak_allocated, total)},
      {"peak_reserved_ratio", share(run.peak_reserved, total)},
      {"mean_peak_ratio", steps > 0 ? totals.peak_shares / steps : 0},
      {"min_headroom_bytes", static_cast<double>(total) - static_cast<double>(run.peak_reserved)},
      {"adjustments", static_cast<double>(run.adjustments.size())},
      {"direction_changes", static_cast<double>(direction_changes(run.adjustments))},
      {"last_adjustment_iteration", static_cast<double>(last_adjustment)},
      {"evaluations_to_settle", static_cast<double>(evaluations_until(run.iterations, last_adjustment))},
      {"samples_per_s", per_second(totals.samples)},
      {"pixels_per_s", per_second(totals.pixels)},
      {"oom_time_share", seconds > 0 ? totals.failed_s / seconds : 0},
      {"errors", static_cast<double>(totals.errors)},
      {"heavy_steps", static_cast<double>(run.faults.heavy_steps)},
      {"heavy_ooms", static_cast<double>(run.faults.heavy_ooms)},
      {"late_changes", static_cast<double>(run.faults.late_changes)},
      {"missing_readings", static_cast<double>(run.faults.missing_readings)},
      {"leaked_bytes", static_cast<double>(run.faults.leaked)},
      {"lost_iterations", static_cast<double>(totals.lost)},
      {"phase_ooms", static_cast<double>(run.phase_ooms)},
      {"phase_time_share", seconds > 0 ? to_seconds(run.phase_time) / seconds : 0},
      {"objective", done * objective_of(scenario.objective, totals.samples, totals.pixels, seconds)},
  };
}

std::optional<double> find_metric(const std::vector<Metric>& metrics, std::string_view name) {
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
  return found == metrics.end() ? std::nullopt : std::optional{found->value};
}

std::vector<std::string> training_metric_names() {
  std::vector<std::string> names;
  const Scenario nothing;  // a temporary here makes g++ 12 warn wrongly about uninitialised members
  for (const Metric& metric : training_metrics(nothing, {})) names.push_back(metric.name);
  names.emplace_back("disturbance_cost");
  names.emplace_back("regret");
  return names;
}

double objective_of(Objective objective, double samples, double pixels, double seconds) {
  switch (objective) {
    case Objective::lq_then_batch:
      return pixels;
    case Objective::pixels_per_s:
      return seconds > 0 ? pixels / seconds : 0;
    case Objective::samples_per_s:
      return seconds > 0 ? samples / seconds : 0;
  }
  return 0;
}

bool within_target(const Target& target, Bytes peak, Bytes total) {
  constexpr double kSlack = 1e-12;  // target and margin are decimals; their sum is one only nearly
  return static_cast<double>(peak) <= (target.usage + target.margin + kSlack) * static_cast<double>(total);
}

}  // namespace vramlab
