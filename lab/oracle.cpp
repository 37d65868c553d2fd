#include <algorithm>
#include <utility>

#include "lab/comparison.hpp"

namespace vramlab {
namespace {

constexpr int kProbeSteps = 3;  // the first makes the optimizer state, the others show the settled peak
constexpr double kRoundingSlack = 1e-12;  // target + margin is a sum of two decimals

/// The most memory that other processes hold at one moment of the run.
Bytes most_others(const std::vector<OtherProcess>& others) {
  Bytes most = 0;
  for (const OtherProcess& arrival : others) {
    Bytes at_once = 0;
    for (const OtherProcess& other : others) {
      if (other.from <= arrival.from && arrival.from < other.to) at_once += other.bytes;
    }
    most = std::max(most, at_once);
  }
  return most;
}

/// A point with the work it does, as far as a few steps can tell.
struct Candidate {
  Point point;
  double objective = 0;
};

class OracleSearch {
 public:
  explicit OracleSearch(const Scenario& scenario)
      : scenario_(scenario),
        parameters_(scenario.setup.bounds.parameters),
        others_(most_others(scenario.setup.others)) {}

  // Memory grows with the first parameter, so only the largest safe value of it is worth a full run.
  std::optional<PolicyResult> run() {
    Point point;
    for (const Parameter& parameter : parameters_) point.push_back(parameter.high);
    std::int64_t guess = parameters_[0].low;
    do {
      guess = add_largest_safe(point, guess);
    } while (next_lower(point));
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.objective > b.objective;  // found from large to small, so among equals the larger one first
    });
    for (const Candidate& candidate : candidates_) {
      if (auto result = verify(candidate.point)) return result;
    }
    return std::nullopt;
  }

 private:
  // Counts all parameters but the first down, the second fastest.
  bool next_lower(Point& point) const {
    for (std::size_t i = 1; i < point.size(); ++i) {
      if (point[i] > parameters_[i].low) {
        --point[i];
        return true;
      }
      point[i] = parameters_[i].high;
    }
    return false;
  }

  // Returns the value found: a good guess for the next, slightly smaller point.
  std::int64_t add_largest_safe(Point point, std::int64_t guess) {
    point[0] = guess;
    std::optional<Candidate> best = probe(point);
    if (best) {
      for (; point[0] < parameters_[0].high;) {
        ++point[0];
        auto larger = probe(point);
        if (!larger) break;
        best = std::move(larger);
      }
    } else {
      while (!best && point[0] > parameters_[0].low) {
        --point[0];
        best = probe(point);
      }
    }
    if (!best) return parameters_[0].low;
    candidates_.push_back(*best);
    return best->point[0];
  }

  std::optional<Candidate> probe(const Point& point) const {
    StepRunner runner{*scenario_.model, scenario_.setup.process};
    runner.set_others(others_);
    SimTime last{0};
    for (int step = 0; step < kProbeSteps; ++step) {
      const StepOutcome outcome = runner.run(point);
      if (outcome.result == StepResult::oom || !within_target(outcome.peak_allocated, runner.view().total)) {
        return std::nullopt;
      }
      last = outcome.duration;
    }
    return Candidate{point, work(point, to_seconds(last))};
  }

  bool within_target(Bytes peak, Bytes total) const {
    const Target& target = scenario_.target;
    return static_cast<double>(peak) <=
           (target.usage + target.margin + kRoundingSlack) * static_cast<double>(total);
  }

  double work(const Point& point, double seconds) const {
    const auto samples = static_cast<double>(scenario_.model->samples(point));
    const auto pixels = static_cast<double>(scenario_.model->pixels(point));
    switch (scenario_.objective) {
      case Objective::lq_then_batch:
        return pixels;
      case Objective::pixels_per_s:
        return seconds > 0 ? pixels / seconds : pixels;
      case Objective::samples_per_s:
        return seconds > 0 ? samples / seconds : samples;
    }
    return 0;
  }

  std::optional<PolicyResult> verify(const Point& point) const {
    Scenario fixed = scenario_;
    fixed.setup.start = point;
    PolicyResult result =
        run_policy(fixed, {"oracle", {.use = "fixed", .profile = {}, .options = {}, .where = {}}});
    result.policy = "oracle";
    const Bytes total = result.run.iterations.back().memory.total;
    const bool failed = *find_metric(result.metrics, "ooms") > 0;
    if (failed || !within_target(result.run.peak_allocated, total)) return std::nullopt;
    return result;
  }

  const Scenario& scenario_;
  const std::vector<Parameter>& parameters_;
  Bytes others_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::optional<PolicyResult> find_oracle(const Scenario& scenario) { return OracleSearch{scenario}.run(); }

}  // namespace vramlab
