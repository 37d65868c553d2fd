#include <algorithm>
#include <queue>
#include <set>
#include <utility>

#include "lab/kinds/training/run.hpp"

namespace vramlab {
namespace {

constexpr double kMostRows = 1024;  // of values of the other parameters; wider ranges are searched in strides
constexpr int kMostFullRuns = 500;
constexpr int kPatience = 20;             // full runs without a better one, once there is one
constexpr std::int64_t kFewPoints = 512;  // each of so few is a candidate

/// A point with the objective of a run that does nothing but its steps, which no run there exceeds.
struct Candidate {
  Point point;
  double objective = 0;
  std::size_t found = 0;  ///< order of discovery: among equals the earlier one is better

  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.objective != b.objective ? a.objective < b.objective : a.found > b.found;
  }
};

// What a run leaks between the probe's last step and its own last one, in the process that leaks most. The
// last step's own leak comes after its peak.
Bytes leak_ahead(const Faults& faults, std::int64_t iterations, std::int64_t probe_steps) {
  const Restart& restart = faults.restart;
  const bool restarts = restart.after > 0 && restart.after <= iterations;
  const Bytes first = faults.leaked(1, (restarts ? restart.after : iterations) - 1);
  const Bytes second = restarts ? faults.leaked(restart.checkpoint() + 1, iterations - 1) : 0;
  const Bytes most = std::max(first, second);
  return most - std::min(most, faults.leaked(1, probe_steps - 1));
}

/// Probes every row (one value of all parameters but the first) for its largest safe first parameter, then
/// runs the best of these in full, and a smaller one of the same row where the full run breaks a condition.
/// What counts is the objective of the full runs. Where time counts, retries may make a smaller step the
/// faster one: then points around the best so far are tried, too.
class OracleSearch {
 public:
  explicit OracleSearch(const TrainingScenario& scenario)
      : scenario_(scenario), parameters_(scenario.setup.bounds.parameters) {
    const auto settled = static_cast<int>(scenario.model->first_steps()) + 2;
    probe_steps_ = std::max(3, settled);  // the first step makes the optimizer's state
    probe_cards_ = cards_of(scenario.setup);
    for (ProcessSetup& card : probe_cards_) card.use_step_cache = false;  // hardly a step comes twice
    leak_ahead_ = leak_ahead(scenario.setup.faults, scenario.setup.iterations, probe_steps_);
    choose_strides();
  }

  std::optional<PolicyResult> run() {
    for (const Phase& phase : scenario_.setup.phases) {
      const bool comes = phase.every <= scenario_.setup.iterations;
      // No choice of the other parameters can mend that.
      if (comes && phase.follow.empty() && !probe(phase.point, {}, 0)) return std::nullopt;
    }
    find_rows();
    const Point& start = scenario_.setup.start;
    add(start);  // which strides may have left out
    bool tried_start = false;
    int in_vain = 0;
    for (int runs = 0; runs < kMostFullRuns && !candidates_.empty(); ++runs) {
      const Candidate next = candidates_.top();
      candidates_.pop();
      if (best_ && next.objective * efficiency_.value_or(1) <= best_objective_) break;
      tried_start = tried_start || next.point == start;
      in_vain = try_in_full(next) || !best_ ? 0 : in_vain + 1;
      if (in_vain == kPatience) break;
    }
    // No policy that stays there may have done more.
    if (!tried_start) try_in_full({.point = start, .objective = bound_at(start)});
    return std::move(best_);
  }

 private:
  [[nodiscard]] bool is_rate() const { return counts_time(scenario_.objective); }

  // Returns whether it is the best so far.
  bool try_in_full(const Candidate& candidate) {
    auto result = verify(candidate.point);
    if (!result) {
      Point smaller = candidate.point;
      if (--smaller[0] >= parameters_[0].low) add(smaller);
      return false;
    }
    const double objective = *find_metric(result->metrics, "objective");
    if (result->run.memory.num_alloc_retries == 0 && candidate.objective > 0) {
      // What phases and restarts cost is much the same elsewhere; what retries cost is not.
      efficiency_ = std::max(efficiency_.value_or(0), objective / candidate.objective);
    }
    if (best_ && objective <= best_objective_) return false;
    best_ = std::move(result);
    best_objective_ = objective;
    if (is_rate()) add_around(candidate.point);
    add_rows_between(candidate.point);
    return true;
  }

  void add_around(Point point) {
    const auto& [name, low, high] = parameters_[0];
    const std::int64_t middle = point[0];
    for (std::int64_t away = 1; away <= high - low; away *= 2) {
      for (const std::int64_t value : {middle - away, middle + away}) {
        if (value < low || value > high) continue;
        point[0] = value;
        add(point);
      }
    }
  }

  // Those that strides left out.
  void add_rows_between(const Point& point) {
    for (std::size_t i = 1; i < point.size(); ++i) {
      for (std::int64_t step = strides_[i] / 2; step > 0; step /= 2) {
        for (const std::int64_t value : {point[i] - step, point[i] + step}) {
          if (value < parameters_[i].low || value > parameters_[i].high) continue;
          Point row = point;
          row[i] = value;
          add_largest_safe(row, point[0]);
        }
      }
    }
  }

  // From large to small; the largest safe value of one row is a good guess for the next.
  void find_rows() {
    Point point;
    for (const Parameter& parameter : parameters_) point.push_back(parameter.high);
    std::int64_t guess = parameters_[0].low;
    const bool all = is_rate() && points() <= kFewPoints;
    do {
      if (!all) guess = add_largest_safe(point, guess);
      for (point[0] = parameters_[0].low; all && point[0] <= parameters_[0].high; ++point[0]) add(point);
    } while (next_row(point));
  }

  // All within bounds; only as far as kFewPoints is of interest.
  [[nodiscard]] std::int64_t points() const {
    std::int64_t points = 1;
    for (const Parameter& one : parameters_) {
      points = std::min(points, kFewPoints + 1) * std::min(one.high - one.low + 1, kFewPoints + 1);
    }
    return points;
  }

  // The parameter with the most values gets the wider strides, so that all of them move.
  void choose_strides() {
    strides_.assign(parameters_.size(), 1);
    const auto values = [&](std::size_t i) {
      return (parameters_[i].high - parameters_[i].low) / strides_[i] + 1;
    };
    while (true) {
      std::size_t most = 1;
      double rows = 1;
      for (std::size_t i = 1; i < parameters_.size(); ++i) {
        rows *= static_cast<double>(values(i));
        if (values(i) > values(most)) most = i;
      }
      if (rows <= kMostRows) return;
      strides_[most] += 1 + strides_[most] / 8;
    }
  }

  bool next_row(Point& point) const {
    for (std::size_t i = 1; i < point.size(); ++i) {
      if (point[i] > parameters_[i].low) {
        point[i] = std::max(parameters_[i].low, point[i] - strides_[i]);
        return true;
      }
      point[i] = parameters_[i].high;
    }
    return false;
  }

  // Memory grows with the first parameter. Away from the guess in steps that double, then by bisection: the
  // next row's value is mostly near, but not where another parameter begins anew. Returns the value found, or
  // the lowest if none is safe.
  std::int64_t add_largest_safe(Point point, std::int64_t guess) {
    const std::int64_t low = parameters_[0].low;
    const std::int64_t high = parameters_[0].high;
    std::int64_t safe = low - 1;
    std::int64_t unsafe = high + 1;
    std::optional<double> objective;  // at `safe`
    std::int64_t step = 1;
    for (std::int64_t next = guess; unsafe - safe > 1;) {
      point[0] = next;
      if (const auto found = probe(point)) {
        objective = found;
        safe = next;
      } else {
        unsafe = next;
      }
      if (unsafe > high) {
        next = std::min(high, safe + step);
      } else if (safe < low) {
        next = std::max(low, unsafe - step);
      } else {
        next = safe + (unsafe - safe) / 2;
      }
      step *= 2;
    }
    if (!objective) return low;
    point[0] = safe;
    push(point, *objective);
    return safe;
  }

  void add(const Point& point) {
    if (pushed_.contains(point)) return;
    if (const auto objective = probe(point)) push(point, *objective);
  }

  // Each point once.
  void push(const Point& point, double objective) {
    if (pushed_.insert(point).second) candidates_.push({point, objective, found_++});
  }

  // What a run of nothing but such steps comes to. The time that retries take is left to the full run.
  [[nodiscard]] double bound_at(const Point& point) const {
    const WorkloadModel& model = *scenario_.model;
    SimTime step{0};  // cards with parts of the model work one after another
    for (std::size_t card = 0; card < model.cards(); ++card) step += model.on_card(card).step(point).duration;
    const auto steps = static_cast<double>(scenario_.setup.iterations);
    const WorkDone work{steps * static_cast<double>(model.samples(point)),
                        steps * static_cast<double>(model.pixels(point)),
                        rank_of(scenario_.setup.bounds, point)};
    return objective_of(scenario_.objective, work, steps * to_seconds(step));
  }

  std::optional<double> probe(const Point& point) const {
    for (const Phase& phase : scenario_.setup.phases) {
      if (phase.follow.empty() || phase.every > scenario_.setup.iterations) continue;
      if (!probe(phase.beside(point, scenario_.model->parameters()), {}, 0)) return std::nullopt;
    }
    return probe(point, scenario_.setup.faults, leak_ahead_);
  }

  // The first steps of a fresh process with the faults that they have, without company; bound_at(point), or
  // empty if one is not safe or leaves no room for the leak that surely follows. Faults that may meet or not
  // are left to the full run.
  std::optional<double> probe(const Point& point, const Faults& faults, Bytes leak_ahead) const {
    CardRunner runner{*scenario_.model, probe_cards_};
    StepOutcome step;
    Bytes besides = 0;
    const auto is_safe = [&](Bytes peak) {
      return within_target(scenario_.target, peak, runner.card(runner.fullest()).view().total);
    };
    for (int i = 1; i <= probe_steps_; ++i) {
      besides = faults.needed_besides(i, i == 1);
      step = runner.run(point, {besides, faults.left_behind(i, i == 1)});
      if (step.result == StepResult::oom || !is_safe(step.peak_allocated)) return std::nullopt;
    }
    if (!is_safe(step.peak_allocated - besides + leak_ahead)) return std::nullopt;
    if (!ranks_by_memory(scenario_)) return bound_at(point);
    return static_cast<double>(step.peak_allocated) /
           static_cast<double>(runner.card(runner.fullest()).view().total);
  }

  std::optional<PolicyResult> verify(const Point& point) const {
    TrainingScenario fixed = scenario_;
    fixed.setup.start = point;
    PolicyResult result =
        run_policy(fixed, {"oracle", {.use = "fixed", .profile = {}, .options = {}, .where = {}}});
    result.policy = "oracle";
    const CardPeak& peak = result.run.peak_allocated;
    const bool safe = *find_metric(result.metrics, "ooms") == 0 && result.run.ended_early.empty() &&
                      within_target(scenario_.target, peak.bytes, peak.total);
    return safe ? std::optional{std::move(result)} : std::nullopt;
  }

  const TrainingScenario& scenario_;
  const std::vector<Parameter>& parameters_;
  std::vector<ProcessSetup> probe_cards_;
  int probe_steps_ = 3;
  Bytes leak_ahead_ = 0;  ///< what leaks after the probe, before the last step
  Point strides_;         ///< by parameter; that of the first is not used
  std::priority_queue<Candidate> candidates_;
  std::set<Point> pushed_;
  std::size_t found_ = 0;
  std::optional<PolicyResult> best_;  ///< of the full runs
  double best_objective_ = 0;
  std::optional<double> efficiency_;  ///< most of its bound that a run without retries came to
};

}  // namespace

std::optional<PolicyResult> find_oracle(const TrainingScenario& scenario) {
  // What a real card measured has no rival among steps that were never timed.
  if (scenario.setup.make_performer && !scenario.model->timed()) return std::nullopt;
  TrainingScenario simulated = scenario;
  simulated.setup.make_performer = nullptr;                       // hundreds of runs: never on a real card
  for (const MovedPhase& moved : simulated.setup.moved_phases) {  // what can stand beside most
    for (std::size_t i = 0; i < moved.bounds.size(); ++i) {
      simulated.setup.phases[moved.phase].point[i] = moved.bounds.parameters[i].low;
    }
  }
  simulated.setup.moved_phases.clear();
  return OracleSearch{simulated}.run();
}

}  // namespace vramlab
