#include "sim/workload/search_epoch.hpp"

#include <algorithm>
#include <optional>

#include "sim/core/random.hpp"
#include "sim/workload/training_loop.hpp"

namespace vramlab {
namespace {

class Epoch {
 public:
  Epoch(const BatchSearchSetup& search, const EpochSetup& setup)
      : search_(search), setup_(setup), random_(setup.seed), runner_(*search.model, search.cards) {}

  EpochRun run() {
    std::int64_t failures_in_a_row = 0;
    while (run_.iterations < setup_.iterations && failures_in_a_row < kMostFailuresInARow) {
      ++run_.iterations;
      const EpochBucket& bucket = any_bucket();
      const Point point = any_point(bucket);
      const StepOutcome step = perform(point);
      failures_in_a_row = step.result == StepResult::oom ? failures_in_a_row + 1 : 0;
      if (step.result == StepResult::ok) run_.samples += search_.model->samples(point);
      const bool phases = setup_.phases_every > 0 && run_.iterations % setup_.phases_every == 0;
      if (phases) run_phases(bucket.point[search_.parameter]);
    }
    for (std::size_t i = 0; i < runner_.size(); ++i) {
      run_.retries += runner_.card(i).stats().num_alloc_retries;
    }
    return run_;
  }

 private:
  const EpochBucket& any_bucket() {
    const auto last = static_cast<std::int64_t>(setup_.buckets.size()) - 1;
    return setup_.buckets[static_cast<std::size_t>(random_.between(0, last))];
  }

  Point any_point(const EpochBucket& bucket) {
    Point point = bucket.point;
    for (const EpochBucket::Draw& draw : bucket.draws) {
      point[draw.parameter] = random_.between(draw.low, draw.high);
    }
    return point;
  }

  StepOutcome perform(const Point& point) {
    const StepOutcome step = runner_.run(point);
    if (step.result == StepResult::oom) ++run_.ooms;
    run_.duration += step.duration;
    const auto total = static_cast<double>(runner_.card(runner_.fullest()).view().total);
    run_.peak_share = std::max(run_.peak_share, static_cast<double>(step.peak_allocated) / total);
    run_.reserved_share = std::max(run_.reserved_share, static_cast<double>(step.peak_reserved) / total);
    return step;
  }

  // A phase with a model of its own has a process of its own, where it was probed just so.
  void run_phases(std::int64_t batch) {
    for (std::size_t i = 1; i < search_.phases.size(); ++i) {
      const SearchPhase& phase = search_.phases[i];
      if (phase.model != nullptr && phase.model != search_.model) continue;
      Point point = phase.point;
      point[search_.parameter] = batch;
      perform(point);
    }
  }

  const BatchSearchSetup& search_;
  const EpochSetup& setup_;
  Random random_;
  CardRunner runner_;
  EpochRun run_;
};

}  // namespace

EpochRun run_epoch(const BatchSearchSetup& search, const EpochSetup& setup) {
  return Epoch{search, setup}.run();
}

}  // namespace vramlab
