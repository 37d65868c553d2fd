// `predictive`: learns how memory follows from batch and size, and goes to the best pair that surely fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/contract/tuner.hpp"
#include "policies/predictors/memory_law.hpp"
#include "policies/tuners/pair_dwell.hpp"
#include "policies/tuners/work_pairs.hpp"

namespace vramlab {

/// What one evaluation rests on; memory in shares of the total.
struct PredictiveFigures {
  WorkPair now;
  double peak = 0;        ///< of steady steps at `now`, what is there between steps included
  double need = 0;        ///< the same with noise and the leak until the next look
  double limit = 0;       ///< what it may be
  double leak = 0;        ///< per step
  double leak_ahead = 0;  ///< steps for which a new pair has room for a leak
  double outlier = 0;     ///< largest seen
  bool under_pressure = false;
};

/// "(8, 96)", as it stands in reasons.
std::string pair_text(const WorkPair& pair);

/// Everything `predictive` knows. Memory is in shares of the total.
struct PredictiveState {
  /// A pair that failed. It stays out of reach, with all beyond it, until the process has more room.
  struct Failed {
    WorkPair pair;
    double room = 0;   ///< what the process could allocate in steps then
    double limit = 0;  ///< what is predicted to need more than this is out of reach, too

    template <class State>
    void visit(State& state) {
      state(pair, room, limit);
    }
  };

  /// What a step ran at, for readings that come late.
  struct Ran {
    std::int64_t iteration = 0;
    WorkPair pair;
    bool succeeded = false;

    template <class State>
    void visit(State& state) {
      state(iteration, pair, succeeded);
    }
  };

  /// A phase between steps, as it was told of.
  struct PhaseRoom {
    std::uint64_t name = 0;  ///< hashed
    WorkPair times{0, 0};    ///< its pair is that many times training's; 0 = a value of its own …
    WorkPair most;           ///< … and never above this
    MemoryLaw law;           ///< of what it takes above what is there between steps, by its own pair
    bool has_failed = false;
    WorkPair failed{0, 0};   ///< smallest pair that failed beside an emptied cache; batch 0 = none
    double beside = 1;       ///< highest peak of training that left it room, as far as is known
    std::int64_t tries = 0;  ///< how often training gave way to a phase of a size of its own

    /// Whether it grows with training.
    [[nodiscard]] bool follows() const { return times.batch > 0 || times.size > 0; }
    [[nodiscard]] WorkPair at(const WorkPair& training) const;

    template <class State>
    void visit(State& state) {
      state(name, times, most, law, has_failed, failed, beside, tries);
    }
  };

  MemoryLaw steady;  ///< of a step above what is there between steps
  MemoryLaw first;   ///< of the first step at a pair that is new
  WorkScore score;
  PairDwell dwell;
  LeakWatch leak;
  FixedList<Failed, 8> failed;
  FixedList<Ran, 16> ran;
  FixedList<PhaseRoom, 4> phases;

  bool is_read = false;            ///< `base` is known
  double base = 0;                 ///< allocated between steps
  double capacity = 1;             ///< what the allocator could reserve
  double fragmentation = 1;        ///< reserved over allocated that must be expected
  double least_fragmentation = 1;  ///< what failures and pressure taught
  double outlier = 0;              ///< largest excess of a reading that stood alone
  double noise = 0;                ///< of steady readings, a share of them
  bool is_own_cache = true;        ///< nothing but steps at this pair filled the cache since it was empty
  double own_fragmentation = 1;    ///< reserved there over `stay_peak`
  WorkPair came_from{0, 0};        ///< where the last growth began; batch 0 = the last move was none
  bool is_squeezed = false;        ///< a step at the new pair flushed the cache before any was steady
  bool is_waste_held = false;      ///< a flush was seen to give nothing back of what is reserved in vain
  double stay_peak = 0;            ///< highest peak of the stay at this pair, the first step's among them
  std::uint64_t retries = 0;       ///< as last read
  std::int64_t pressure = 0;       ///< steady steps at this pair that flushed the cache
  std::int64_t since_phase = 2;    ///< readings since a validation
  bool is_told = false;            ///< of phases: their peaks are kept out of the readings
  std::int64_t iteration = 0;      ///< last one seen
  std::int64_t reading = 0;        ///< last one used
  std::int64_t time_ns = 0;        ///< end of the last step
  double seconds = 0;              ///< of steps at this pair
  std::int64_t timed = 0;          ///< how many

  std::int64_t since_look = 0;  ///< readings
  bool is_looked_at = false;    ///< the pair was evaluated since it became steady
  std::int64_t hold = 0;        ///< steps without growth, after a failure
  WorkPair tried{0, 0};         ///< where a step failed though others had run well …
  std::int64_t tried_well = 0;  ///< … and how many had
  std::int64_t tried_failures = 0;
  bool goes_back = false;            ///< there, once the hold is over
  bool has_held = false;             ///< no better pair was found at this one …
  double held_room = 0;              ///< … with this room
  std::int64_t moves = 0;            ///< changes with about the same room
  std::int64_t batch_direction = 0;  ///< sign of the last move
  std::int64_t size_direction = 0;
  std::int64_t turns = 0;
  std::int64_t adjustments = 0;
  std::int64_t recoveries = 0;
  std::int64_t failures_in_a_row = 0;
  std::int64_t failures_at_floor = 0;
  std::int64_t looks = 0;

  template <class State>
  void visit(State& state);
};

/// The tuner. Needs `memory.allocated`, `peak_allocated`, `reserved`, `peak_reserved`, `total`,
/// `alloc_retries`, and `device_free` where other processes use the card; it resets the device's peak counter
/// after every step. Where several cards are at work `memory` must be that of the fullest one.
///
/// What it adds up for a pair: what is allocated between steps, the leak of the steps ahead (those of one
/// period for the pair in force, of five for any other; none after a failure), and the upper bound of the
/// step itself, in the steady regime and, at a pair that is new, in that of first steps. The sum must stay
/// below the upper end of the band and below what the card can really give, less fragmentation and the
/// largest outlier seen. A decision takes no heap but for its answer's texts and delta.
class Predictive final : public Tuner {
 public:
  /// Throws InputError as WorkPairs does.
  Predictive(const PredictiveOptions& options, const ParameterSpace& space);

  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override;

  /// Before a phase that has failed the cache is emptied. One that grows with training is kept below what
  /// the card can give, by its own law or, until it has one, by training's, which needs more than a
  /// validation; to one of a size of its own training gives way at most three times.
  TunerAnswer note_phase(const PhaseReport& phase, const Observation& observation) override;

  /// current_batch, current_size, predicted_usage (of the pair in force), misfit (error of predictions per
  /// doubling of the work), fragmentation, leak_per_step, outlier (shares of the total), evaluations,
  /// adjustments, turns, oom_recovery_count.
  [[nodiscard]] std::vector<Statistic> statistics() const override;

  [[nodiscard]] std::string save() const override;
  void load(const std::string& text) override;

 private:
  static constexpr std::int64_t kPressure = 2;  // steady steps that flush the cache

  void note_step(const TunerQuestion& question, const Observation& observation);
  void begin_process();
  bool read(const Observation& observation, TunerAnswer& answer);
  void read_step(const WorkPair& pair, const Observation& observation, TunerAnswer& answer);
  void read_fragmentation(const MemoryView& memory);
  void learn();
  void phase_succeeded(PredictiveState::PhaseRoom& room, const WorkPair& ran, double need);
  void phase_failed(PredictiveState::PhaseRoom& room, const PhaseReport& phase, TunerAnswer& answer);
  [[nodiscard]] bool leaves_room(const WorkPair& pair, double need) const;
  [[nodiscard]] double phase_need(const PredictiveState::PhaseRoom& room, const WorkPair& ran) const;
  void recover(const TunerQuestion& question, const Observation& observation, TunerAnswer& answer);
  [[nodiscard]] bool was_outlier(const WorkPair& failed, const WorkPair& target,
                                 const TunerQuestion& question, const MemoryView& memory,
                                 double capacity_before);
  [[nodiscard]] bool holds_its_waste(const MemoryView& memory, Bytes reserved) const;
  [[nodiscard]] bool is_squeezed(const MemoryView& memory) const;
  bool go_back(const Point& point, TunerAnswer& answer);
  bool retreat(const Point& point, TunerAnswer& answer);
  [[nodiscard]] WorkPair smaller_blindly(const WorkPair& pair) const;
  [[nodiscard]] bool is_due() const;
  void evaluate(const Point& point, TunerAnswer& answer);
  void shrink(const Point& point, const PredictiveFigures& figures, TunerAnswer& answer);
  void grow(const Point& point, const PredictiveFigures& figures, TunerAnswer& answer);
  [[nodiscard]] std::optional<WorkPair> best(const PairBox& box, double limit, double leak_ahead) const;
  [[nodiscard]] PairBox straight_box() const;
  [[nodiscard]] double least_gain() const;
  [[nodiscard]] std::int64_t turns_to(const WorkPair& target) const;
  [[nodiscard]] bool is_too_much(const PredictiveFigures& figures) const;
  [[nodiscard]] WorkPair lesson(const WorkPair& goal, double limit, double leak_ahead) const;
  [[nodiscard]] double need(const WorkPair& pair, double leak_ahead) const;
  [[nodiscard]] double steady_need(const WorkPair& pair, double leak_ahead) const;
  [[nodiscard]] double first_need(const WorkPair& pair, double leak_ahead) const;
  [[nodiscard]] double with_rest(double step, double leak_ahead) const;
  [[nodiscard]] bool fits(const WorkPair& pair, double limit, double leak_ahead) const;
  [[nodiscard]] bool is_out_of_reach(const WorkPair& pair, double need) const;
  [[nodiscard]] double limit() const;
  [[nodiscard]] double growing_fragmentation() const;
  [[nodiscard]] double score(const WorkPair& pair) const;
  [[nodiscard]] double gain_over(const WorkPair& pair, const WorkPair& other) const;
  void move(const Point& point, const WorkPair& target, TunerAnswer& answer);

  PredictiveOptions options_;
  WorkPairs pairs_;
  WorkPair current_;  ///< the pair in force
  PredictiveState state_;
};

}  // namespace vramlab
