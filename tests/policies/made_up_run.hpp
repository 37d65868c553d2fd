// Steps of a workload with a memory law made up by a test, as a tuner's session meets them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/contract/policy_set.hpp"
#include "policies/contract/session.hpp"

namespace vramlab {

/// Bytes of a card of 10,000,000, so that a share of 0.8975 is a whole number of them.
constexpr Bytes kMadeUpTotal = 10'000'000;

/// What steps take, in shares of the total.
struct MadeUpLaw {
  std::function<double(const Point&)> step;                        ///< above what is there between steps
  double base = 0.02;                                              ///< allocated between steps
  std::function<double(const Point&, std::int64_t visit)> factor;  ///< of the visits to a point; may be empty
  double noise = 0;                                                ///< readings vary evenly by ± this share
  std::uint64_t seed = 1;
};

/// One session on that workload. A step fails if its peak exceeds what the card has.
class MadeUpRun {
 public:
  MadeUpRun(MadeUpLaw law, const ParameterSpace& space, Point start, const OptionMap& options,
            const std::string& use = "predictive")
      : law_(std::move(law)) {
    session_.emplace(builtin_policies()->tuners.make({use, "", options, "/policies/0"}, space), space,
                     std::move(start));
  }

  /// `count` steps, or fewer if the run ends.
  void run(std::int64_t count) {
    for (std::int64_t i = 0; i < count && !session_->ended(); ++i) step();
  }

  StepDecision step() {
    ++iteration_;
    const Point point = session_->point();
    const std::int64_t visit = visits_[point]++;
    const double factor = law_.factor ? law_.factor(point, visit) : 1;
    const double peak = base() + law_.step(point) * factor * (1 + law_.noise * even()) + besides;
    const bool fails = peak > capacity || always_fails;
    if (fails) failed_.push_back(point);
    if (!fails) leaked_ += leak;
    highest = std::max(highest, fails ? 0.0 : peak);
    last_peak_ = peak;
    const MemoryView memory{.allocated = bytes(base()),
                            .peak_allocated = bytes(std::min(peak, capacity)),
                            .reserved = bytes(std::min(peak, capacity)),
                            .peak_reserved = bytes(std::min(peak, capacity)),
                            .total = kMadeUpTotal,
                            .device_free = bytes(capacity - std::min(peak, capacity)),
                            .alloc_retries = retries};
    const Observation observation{.iteration = iteration_,
                                  .time = std::chrono::seconds(seconds_a_step * iteration_),
                                  .memory = memory,
                                  .reading = iteration_,
                                  .new_process = std::exchange(process_is_new_, false)};
    const StepResult result = fails ? StepResult::oom : error ? StepResult::error : StepResult::ok;
    last_ = session_->after_step(result, observation);
    if (!last_.reason.empty()) ++evaluations_;
    if (last_.moved) settled_after_ = evaluations_;
    besides = 0;
    return last_;
  }

  double besides = 0;   ///< what the next step needs more, once
  double leak = 0;      ///< what every step leaves behind
  double capacity = 1;  ///< what the process can have
  double highest = 0;   ///< peak of any step that succeeded
  std::uint64_t retries = 0;
  std::int64_t seconds_a_step = 1;
  bool error = false;
  bool always_fails = false;

  /// The host goes on with another session.
  void replace_session(std::unique_ptr<Tuner> tuner, const ParameterSpace& space, Point start) {
    session_.emplace(std::move(tuner), space, std::move(start));
  }

  /// The process ended, and another one goes on after step `checkpoint`.
  void begin_process(std::int64_t checkpoint) {
    iteration_ = checkpoint;
    retries = 0;
    leaked_ = 0;
    visits_.clear();
    process_is_new_ = true;
  }

  TunerSession& session() { return *session_; }
  [[nodiscard]] const Point& point() const { return session_->point(); }
  [[nodiscard]] double peak() const { return last_peak_; }
  [[nodiscard]] std::int64_t iteration() const { return iteration_; }
  [[nodiscard]] const std::vector<Point>& failed() const { return failed_; }
  [[nodiscard]] std::int64_t settled_after() const { return settled_after_; }  ///< evaluations
  [[nodiscard]] const StepDecision& last() const { return last_; }

  [[nodiscard]] std::int64_t turns() const {
    std::int64_t count = 0;
    Point last(session_->point().size());
    for (const Adjustment& one : session_->adjustments()) {
      for (std::size_t i = 0; i < last.size(); ++i) {
        const std::int64_t step = one.to[i] - one.from[i];
        if (step == 0) continue;
        if (last[i] != 0 && (last[i] > 0) != (step > 0)) ++count;
        last[i] = step;
      }
    }
    return count;
  }

 private:
  [[nodiscard]] double base() const { return law_.base + leaked_; }

  static Bytes bytes(double share) {
    return static_cast<Bytes>(std::max(0.0, share) * static_cast<double>(kMadeUpTotal) + 0.5);
  }

  // Evenly between -1 and 1 (SplitMix64).
  double even() {
    std::uint64_t z = law_.seed += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return 2 * (static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53) - 1;
  }

  MadeUpLaw law_;
  std::optional<TunerSession> session_;
  std::map<Point, std::int64_t> visits_;
  std::vector<Point> failed_;
  StepDecision last_;
  double leaked_ = 0;
  double last_peak_ = 0;
  bool process_is_new_ = true;
  std::int64_t iteration_ = 0;
  std::int64_t evaluations_ = 0;
  std::int64_t settled_after_ = 0;
};

}  // namespace vramlab
