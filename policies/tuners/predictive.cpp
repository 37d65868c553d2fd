#include "policies/tuners/predictive.hpp"

#include <algorithm>

#include "policies/contract/policy_set.hpp"
#include "policies/contract/saved_state.hpp"

namespace vramlab {
namespace {

constexpr const char* kSavedHead = "predictive-3";
constexpr std::int64_t kPatience = 10;      // readings after which noise is taken for noise
constexpr std::int64_t kPhaseReadings = 2;  // after a validation the cache is not the training's yet
constexpr double kWorthLearning = 0.002;    // change of a known value, a share of it
constexpr double kTellingPeak = 0.3;        // below it segments are far from full and say little

}  // namespace

template <class State>
void PredictiveState::visit(State& state) {
  state(steady, first, score, dwell, leak, failed, ran, phases, is_told, is_read, base, capacity,
        fragmentation, least_fragmentation, outlier, noise, is_own_cache, own_fragmentation, stay_peak,
        came_from, is_squeezed, is_waste_held, tried, tried_well, tried_failures, goes_back, seconds,
        held_room, retries, is_looked_at, has_held, pressure, since_phase, iteration, reading, time_ns, timed,
        since_look, hold, moves, batch_direction, size_direction, turns, adjustments, recoveries,
        failures_in_a_row, failures_at_floor, looks);
}

Predictive::Predictive(const PredictiveOptions& options, const ParameterSpace& space)
    : options_(options), pairs_(options, space) {
  state_.score = WorkScore{options.objective};
  state_.fragmentation = options.assumed_fragmentation;
}

TunerAnswer Predictive::decide(const TunerQuestion& question, const Observation& observation) {
  TunerAnswer answer{.reset_peak = true};
  current_ = pairs_.of(question.point);
  note_step(question, observation);
  if (state_.hold > 0) --state_.hold;
  if (question.result == StepResult::oom) {
    recover(question, observation, answer);
    return answer;
  }
  state_.failures_in_a_row = 0;
  state_.failures_at_floor = 0;
  if (question.result == StepResult::error) {
    answer.log.push_back("an error that is not OOM at " + pair_text(pairs_.of(question.ran_at())) +
                         ": its reading is not used, nothing shrinks");
    return answer;
  }
  // A start that the network cannot take would otherwise stay until the first look.
  if (const WorkPair target = pairs_.snapped(current_); target.size != current_.size) {
    if (target.size > current_.size && state_.hold > 0) return answer;
    answer.reason = "snap: size " + std::to_string(current_.size) + " is not a multiple of " +
                    std::to_string(pairs_.box().unit) + "; to " + pair_text(target);
    move(question.point, target, answer);
    return answer;
  }
  // Batches fetched before a change still fill the cache with blocks of the old shape.
  if (!(pairs_.of(question.ran_at()) == current_)) answer.empty_cache = true;
  const bool has_read = read(observation, answer);
  if (go_back(question.point, answer) || retreat(question.point, answer)) return answer;
  if (has_read && is_due()) evaluate(question.point, answer);
  return answer;
}

void Predictive::note_step(const TunerQuestion& question, const Observation& observation) {
  const bool went_back =
      observation.iteration < state_.iteration || observation.memory.alloc_retries < state_.retries;
  if (went_back || observation.new_process) begin_process();
  const WorkPair pair = pairs_.of(question.ran_at());
  const bool succeeded = question.result == StepResult::ok;
  const bool counts =
      succeeded && !observation.after_phase && pair == state_.dwell.pair() && state_.dwell.readings() > 0;
  if (counts) {
    state_.seconds += 1e-9 * static_cast<double>(observation.time.count() - state_.time_ns);
    ++state_.timed;
  }
  state_.time_ns = observation.time.count();
  state_.iteration = observation.iteration;
  state_.ran.push({observation.iteration, pair, succeeded});
}

// After a restart the laws still hold; what was read of the process does not.
void Predictive::begin_process() {
  state_.ran = {};
  state_.dwell = {};
  state_.leak.restart();
  state_.is_read = false;
  state_.reading = 0;
  state_.retries = 0;
  state_.pressure = 0;
  state_.is_looked_at = false;
  state_.has_held = false;
}

// Returns whether there was a new reading of a training step.
bool Predictive::read(const Observation& observation, TunerAnswer& answer) {
  if (observation.reading <= state_.reading) return false;
  state_.reading = observation.reading;
  const MemoryView& memory = observation.memory;
  if (memory.device_free) {
    state_.capacity = std::min(1.0, share_of_total(memory.reserved + *memory.device_free, memory));
  }
  if (observation.after_phase && !state_.is_told) {
    state_.base = share_of_total(memory.allocated, memory);
    state_.is_read = true;
    state_.retries = memory.alloc_retries;
    state_.since_phase = 0;
    return false;
  }
  const auto step = std::find_if(state_.ran.begin(), state_.ran.end(),
                                 [&](const auto& one) { return one.iteration == observation.reading; });
  if (step == state_.ran.end() || !step->succeeded) return false;
  read_step(step->pair, observation, answer);
  return true;
}

void Predictive::read_step(const WorkPair& pair, const Observation& observation, TunerAnswer& answer) {
  const MemoryView& memory = observation.memory;
  const double allocated = share_of_total(memory.allocated, memory);
  const double before = state_.is_read ? state_.base : allocated;
  const double value = std::max(1e-9, share_of_total(memory.peak_allocated, memory) - before);
  if (state_.dwell.readings() == 0 || !(pair == state_.dwell.pair())) {
    state_.dwell = PairDwell{pair};
    state_.leak.restart();
    state_.pressure = 0;
    state_.is_looked_at = false;
    state_.seconds = 0;
    state_.timed = 0;
    state_.stay_peak = 0;
  }
  state_.stay_peak = std::max(state_.stay_peak, share_of_total(memory.peak_allocated, memory));
  const double steady = state_.dwell.steady();
  const bool was_steady = state_.dwell.is_steady();
  const ReadingKind kind = state_.dwell.add(value, kPatience);
  if (kind == ReadingKind::outlier && state_.dwell.stray() > steady) {
    state_.outlier = std::max(state_.outlier, state_.dwell.stray() - steady);
    answer.log.push_back("outlier: one step at " + pair_text(pair) + " took " +
                         fixed_point(state_.dwell.stray(), 3) + " instead of " + fixed_point(steady, 3) +
                         ", and nothing more stays between steps");
    state_.is_looked_at = false;
  } else if (kind == ReadingKind::shift) {
    answer.log.push_back("shift: steps at " + pair_text(pair) + " take " + fixed_point(value, 3) +
                         " now instead of " + fixed_point(steady, 3));
    state_.is_looked_at = false;
  }
  const bool flushed = memory.alloc_retries > state_.retries;
  if (flushed && was_steady && kind == ReadingKind::steady && state_.since_phase >= kPhaseReadings) {
    ++state_.pressure;
  }
  const bool is_new = !was_steady && state_.is_own_cache && state_.came_from.batch > 0 && pair == current_;
  if (flushed && is_new && is_squeezed(memory)) {
    state_.is_squeezed = true;
    state_.is_waste_held = state_.is_waste_held || holds_its_waste(memory, memory.reserved);
  }
  state_.retries = memory.alloc_retries;
  const bool leaked = state_.leak.rate() > 0;
  state_.leak.add(allocated, observation.reading);
  if (!leaked && state_.leak.rate() > 0) {
    answer.log.push_back("leak: what is allocated between steps rose " + std::to_string(state_.leak.rises()) +
                         " times and never fell, by " + fixed_point(state_.leak.rate(), 6) +
                         " of the total a step");
    state_.is_looked_at = false;
  }
  state_.base = allocated;
  state_.is_read = true;
  ++state_.since_phase;
  ++state_.since_look;
  if (state_.dwell.is_steady()) read_fragmentation(memory);
}

// What is reserved may hold cached blocks of other shapes, or more than is needed where there is plenty: it
// never shows too little fragmentation.
void Predictive::read_fragmentation(const MemoryView& memory) {
  if (share_of_total(memory.peak_allocated, memory) < kTellingPeak) return;
  const double seen = static_cast<double>(memory.peak_reserved) / static_cast<double>(memory.peak_allocated);
  state_.fragmentation =
      std::max(state_.least_fragmentation, std::min(state_.fragmentation, std::max(1.0, seen)));
  const double reserved = share_of_total(memory.peak_reserved, memory);
  state_.own_fragmentation = state_.is_own_cache ? std::max(1.0, reserved / state_.stay_peak) : 1;
}

void Predictive::learn() {
  const PairDwell& dwell = state_.dwell;
  const double value = dwell.steady();
  state_.noise = dwell.noise();
  if (!state_.steady.has_measured(dwell.pair())) {
    state_.first.add(dwell.pair(), std::max(value, dwell.first()), state_.noise);
    state_.steady.add(dwell.pair(), value, dwell.error());
    if (state_.timed > 0 && state_.seconds > 0) {
      state_.score.learn(pairs_.work(dwell.pair()), state_.seconds / static_cast<double>(state_.timed));
    }
    return;
  }
  const double known = state_.steady.expected(dwell.pair());
  if (std::abs(value - known) > kWorthLearning * known) {
    state_.steady.add(dwell.pair(), value, dwell.error());
  }
}

bool Predictive::is_due() const {
  const PairDwell& dwell = state_.dwell;
  if (!(dwell.pair() == current_) || !dwell.is_steady() || dwell.is_suspect()) return false;
  return !state_.is_looked_at || state_.pressure >= kPressure ||
         state_.since_look >= options_.adjustment_frequency;
}

std::vector<Statistic> Predictive::statistics() const {
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };
  return {{"current_batch", number(current_.batch)},
          {"current_size", number(current_.size)},
          {"predicted_usage", state_.steady.empty() ? 0 : state_.base + state_.steady.expected(current_)},
          {"misfit", state_.steady.misfit()},
          {"fragmentation", state_.fragmentation},
          {"leak_per_step", state_.leak.rate()},
          {"outlier", state_.outlier},
          {"evaluations", number(state_.looks)},
          {"adjustments", number(state_.adjustments)},
          {"turns", number(state_.turns)},
          {"oom_recovery_count", number(state_.recoveries)}};
}

std::string Predictive::save() const {
  StateTextWriter writer{kSavedHead};
  PredictiveState copy = state_;
  copy.visit(writer);
  return writer.text();
}

void Predictive::load(const std::string& text) {
  PredictiveState loaded;
  loaded.score = WorkScore{options_.objective};
  StateTextReader reader{kSavedHead, text};
  loaded.visit(reader);
  reader.finish();
  state_ = loaded;
}

TunerEntry predictive_entry() {
  return {.name = "predictive",
          .summary = "learns how memory follows from batch and size, goes to the best pair that surely fits",
          .options = predictive_table().describe(),
          .make = maker<Predictive>(predictive_table())};
}

}  // namespace vramlab
