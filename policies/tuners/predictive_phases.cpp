// What `predictive` makes of phases between steps: it learns what they need, and leaves them room.
#include <algorithm>
#include <limits>

#include "policies/tuners/predictive.hpp"

namespace vramlab {
namespace {

constexpr double kLessBeside = 0.85;    // of training's peak beside which a phase of its own size failed
constexpr std::int64_t kMostTries = 3;  // then training is not what stands in its way
constexpr double kOtherNeed = 0.002;    // change of a known need, a share of it

// FNV-1a: a saved state holds numbers only.
std::uint64_t number_of(const std::string& name) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
  return hash;
}

PredictiveState::PhaseRoom& room_of(PredictiveState& state, const std::string& name) {
  const std::uint64_t number = number_of(name);
  const auto known = [&](const auto& one) { return one.name == number; };
  if (std::none_of(state.phases.begin(), state.phases.end(), known)) state.phases.push({.name = number});
  return *std::find_if(state.phases.begin(), state.phases.end(), known);
}

std::int64_t value_at(std::int64_t times, std::int64_t most, std::int64_t training) {
  return times > 0 && training < most / times ? times * training : most;
}

}  // namespace

WorkPair PredictiveState::PhaseRoom::at(const WorkPair& training) const {
  return {value_at(times.batch, most.batch, training.batch), value_at(times.size, most.size, training.size)};
}

TunerAnswer Predictive::note_phase(const PhaseReport& phase, const Observation& observation) {
  const MemoryView& memory = observation.memory;
  current_ = pairs_.of(phase.point);
  PredictiveState::PhaseRoom& room = room_of(state_, phase.name);
  TunerAnswer answer;
  if (phase.begins) {
    answer.empty_cache = room.has_failed && memory.reserved > memory.allocated;
    return answer;
  }
  const WorkPair ran = pairs_.of(phase.ran);
  room.times = phase.follow.empty() ? WorkPair{0, 0} : pairs_.times(phase.follow);
  // What lies below its multiple was cut to the workload's range.
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  room.most = {ran.batch == room.times.batch * current_.batch ? kNone : ran.batch,
               ran.size == room.times.size * current_.size ? kNone : ran.size};
  state_.base = share_of_total(memory.allocated, memory);
  state_.is_read = true;
  state_.is_told = true;
  state_.since_phase = 0;
  state_.is_own_cache = room.has_failed;  // which empties it
  state_.retries = memory.alloc_retries;
  answer.reset_peak = true;
  if (phase.result == StepResult::ok) {
    phase_succeeded(room, ran, std::max(1e-9, share_of_total(phase.peak_allocated, memory) - state_.base));
  } else if (phase.result == StepResult::oom) {
    phase_failed(room, phase, answer);
  }
  answer.empty_cache = room.has_failed && memory.reserved > memory.allocated;  // its blocks fit no step
  return answer;
}

void Predictive::phase_succeeded(PredictiveState::PhaseRoom& room, const WorkPair& ran, double need) {
  const bool known = room.law.has_measured(ran);
  if (known && std::abs(need - room.law.expected(ran)) <= kOtherNeed * need) return;
  room.law.add(ran, need, kOtherNeed);
  if (room.follows()) state_.has_held = false;  // more may be known to fit now
}

void Predictive::phase_failed(PredictiveState::PhaseRoom& room, const PhaseReport& phase,
                              TunerAnswer& answer) {
  const WorkPair ran = pairs_.of(phase.ran);
  const bool was_emptied = room.has_failed;
  room.has_failed = true;
  ++state_.recoveries;
  const double room_for_it = state_.capacity / state_.fragmentation;
  const bool should_fit = !state_.steady.empty() && state_.base + phase_need(room, ran) <= room_for_it;
  answer.reason = "oom at " + pair_text(ran) + " beside training at " + pair_text(current_) + ": ";
  if (!was_emptied && (should_fit || !room.follows())) {
    answer.reason += "the cache is emptied before it from now on";
    return;
  }
  if (!room.follows() && (++room.tries > kMostTries || state_.steady.empty())) {
    room.beside = 1;
    answer.reason += "no smaller step of training has made room for it; nothing changes";
    return;
  }
  if (room.follows()) {
    const bool is_smaller = room.failed.batch == 0 || !at_or_beyond(ran, room.failed);
    if (is_smaller) room.failed = ran;
  } else {
    room.beside = kLessBeside * std::min(room.beside, state_.base + state_.steady.expected(current_));
  }
  PairBox box = pairs_.box();
  box.high = {std::max(current_.batch, box.low.batch), std::max(current_.size, box.low.size)};
  const WorkPair target =
      state_.steady.empty() ? smaller_blindly(current_) : best(box, limit(), 0).value_or(box.low);
  answer.reason += target == current_ ? "nothing is left to shrink" : "to " + pair_text(target);
  state_.hold = options_.adjustment_frequency;
  if (target == current_) return;
  // What it gives way for may prove to need less than was feared: then the way up again is no turn.
  const std::int64_t turns = state_.turns;
  move(phase.point, target, answer);
  state_.turns = turns;
  state_.batch_direction = 0;
  state_.size_direction = 0;
}

// A validation keeps nothing for a backward pass: it needs no more than a step of training at its pair.
double Predictive::phase_need(const PredictiveState::PhaseRoom& room, const WorkPair& ran) const {
  if (!room.law.empty()) return room.law.upper(ran, options_.confidence);
  return state_.steady.empty() ? 0 : state_.steady.upper(ran, options_.confidence);
}

// Whether all phases have room beside training at `pair`, of which a step needs `need`.
bool Predictive::leaves_room(const WorkPair& pair, double need) const {
  return std::all_of(state_.phases.begin(), state_.phases.end(), [&](const auto& room) {
    if (need > room.beside) return false;
    if (!room.follows() || (room.law.empty() && !room.has_failed)) return true;
    const WorkPair ran = room.at(pair);
    if (room.failed.batch > 0 && at_or_beyond(ran, room.failed)) return false;
    return state_.base + phase_need(room, ran) <= state_.capacity / state_.fragmentation;
  });
}

}  // namespace vramlab
