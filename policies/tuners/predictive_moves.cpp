#include <algorithm>
#include <cmath>
#include <utility>

#include "policies/tuners/predictive.hpp"

namespace vramlab {
namespace {

constexpr double kRoomGivenBack = 0.05;  // share of the total that makes a failure a thing of the past
constexpr double kBelowFailure = 0.97;   // of what a failed pair was predicted to need
constexpr std::int64_t kLeakLooks = 5;   // a new pair has room for a leak of this many periods
constexpr double kOtherRoom = 0.01;      // share of the total that is worth another search
constexpr double kNoiseSlack = 1.01;     // of the limit
constexpr std::int64_t kFreeMoves = 4;   // changes that need bring no more than the least gain
constexpr std::int64_t kMostMoves = 40;  // then nothing brings enough
constexpr double kMoreThanUsual = 1.02;  // of a steady step's peak: it was not a step like the others
constexpr double kNotMuchLess = 0.1;     // work given up for a pair that is known to fit
constexpr double kWholeCard = 0.97;      // of what the process can have
constexpr double kWorthReturning = 4;    // steps that a smaller pair would have cost for each that failed
constexpr double kLesson = 2;            // the work of a first move, at most, next to that of the start

// After the first, second … failure in a row, next to what the failed pair was predicted to need.
double backed_off(std::int64_t failures) { return failures <= 1 ? 0.9 : failures == 2 ? 0.75 : 0.5; }

std::int64_t sign(std::int64_t value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

std::string ratio(double value) { return fixed_point(value, 3); }

std::string percent(double share) { return fixed_point(100 * share, 1) + " %"; }

// Where things stand, as every sentence begins.
std::string standing(const PredictiveFigures& figures) {
  std::string text = "peak " + ratio(figures.peak) + " at " + pair_text(figures.now);
  if (figures.leak > 0) text += ", leak " + fixed_point(figures.leak, 6) + " a step";
  if (figures.outlier > 0) text += ", outliers up to " + ratio(figures.outlier);
  return text;
}

std::string hold_reason(const PredictiveFigures& figures, const std::string& why) {
  return "hold: " + standing(figures) + " of " + ratio(figures.limit) + ", " + why;
}

}  // namespace

std::string pair_text(const WorkPair& pair) {
  return "(" + std::to_string(pair.batch) + ", " + std::to_string(pair.size) + ")";
}

void Predictive::evaluate(const Point& point, TunerAnswer& answer) {
  ++state_.looks;
  state_.is_looked_at = true;
  state_.since_look = 0;
  learn();
  const double room = state_.capacity - state_.base;
  state_.failed.remove_if([&](const auto& failed) { return room > failed.room + kRoomGivenBack; });

  const auto period = static_cast<double>(options_.adjustment_frequency);
  PredictiveFigures figures{.now = current_,
                            .peak = state_.base + state_.dwell.steady(),
                            .need = need(current_, period),
                            .leak = state_.leak.rate(),
                            .leak_ahead = kLeakLooks * period,
                            .outlier = state_.outlier,
                            .under_pressure = state_.pressure >= kPressure};
  state_.pressure = 0;
  if (figures.under_pressure) {
    state_.least_fragmentation = std::max(state_.least_fragmentation, 1.005 * state_.capacity / figures.peak);
    state_.fragmentation = std::max(state_.fragmentation, state_.least_fragmentation);
  }
  figures.limit = limit();
  if (state_.adjustments >= options_.max_adjustments) {
    answer.reason =
        hold_reason(figures, "all " + std::to_string(options_.max_adjustments) + " adjustments are used up");
  } else if (is_too_much(figures)) {
    shrink(point, figures, answer);
  } else {
    grow(point, figures, answer);
  }
}

// The more often it has moved, the more a further change must bring: so it settles.
double Predictive::least_gain() const {
  const std::int64_t doublings = std::max<std::int64_t>(0, state_.moves - kFreeMoves);
  return std::ldexp(options_.least_gain, static_cast<int>(doublings));
}

// Noise alone, estimated anew at every look, must not move a pair that was chosen with room for it.
bool Predictive::is_too_much(const PredictiveFigures& figures) const {
  const double without_noise = need(current_, static_cast<double>(options_.adjustment_frequency)) -
                               options_.confidence * state_.noise * state_.dwell.steady();
  return without_noise > figures.limit || figures.need > kNoiseSlack * figures.limit;
}

void Predictive::shrink(const Point& point, const PredictiveFigures& figures, TunerAnswer& answer) {
  PairBox box = pairs_.box();
  box.high = current_;
  const WorkPair target = best(box, figures.limit, figures.leak_ahead).value_or(box.low);
  if (target == current_) {
    answer.reason = hold_reason(figures, "more than that, but nothing is left to shrink");
    return;
  }
  answer.reason = "shrink: " + standing(figures) + ", " +
                  (figures.under_pressure ? "steady steps flush the cache"
                                          : ratio(figures.need) + " is above " + ratio(figures.limit)) +
                  "; " + pair_text(target) + " takes at most " + ratio(need(target, figures.leak_ahead));
  move(point, target, answer);
}

void Predictive::grow(const Point& point, const PredictiveFigures& figures, TunerAnswer& answer) {
  if (state_.hold > 0) {
    answer.reason =
        hold_reason(figures, "no growth for " + std::to_string(state_.hold) + " more steps after a failure");
    return;
  }
  // Staying teaches nothing new: what was not worth a move is looked for again when there is other room.
  const double room = figures.limit - state_.base - state_.leak.rate() * figures.leak_ahead;
  if (state_.has_held && std::abs(room - state_.held_room) <= kOtherRoom) {
    answer.reason = hold_reason(figures, "as at the look before");
    return;
  }
  if (state_.has_held && room > state_.held_room + kRoomGivenBack) state_.moves = 0;
  state_.has_held = true;
  state_.held_room = room;
  const double limit = std::min(figures.limit, state_.capacity / growing_fragmentation());
  const auto search = [&](const PairBox& box) {
    return best(box, limit, figures.leak_ahead).value_or(current_);
  };
  WorkPair goal = search(straight_box());
  double gain = gain_over(goal, current_);
  if (gain < least_gain()) goal = current_;
  if (state_.turns < options_.most_turns) {
    const WorkPair turning = search(pairs_.box());
    const bool pays = gain_over(turning, goal) > std::max(least_gain(), options_.least_gain_to_turn);
    if (pays && state_.turns + turns_to(turning) <= options_.most_turns) goal = turning;
  }
  if (goal == current_) {
    answer.reason =
        hold_reason(figures, "and nothing that surely fits does " + percent(least_gain()) + " more");
    return;
  }
  gain = gain_over(goal, current_);
  const bool is_far = pairs_.work(goal) > kLesson * pairs_.work(current_);
  const WorkPair small =
      state_.steady.pairs() == 1 && is_far ? lesson(goal, limit, figures.leak_ahead) : goal;
  const WorkPair target = small == current_ ? goal : small;
  const std::string at_most =
      ", at most " + ratio(need(target, figures.leak_ahead)) + " of " + ratio(figures.limit);
  answer.reason =
      "grow: " + standing(figures) + "; " +
      (target == goal
           ? pair_text(target) + " should take " + ratio(state_.base + state_.steady.expected(target)) +
                 at_most + ", and does " + percent(gain) + " more"
           : "a small move to " + pair_text(target) + at_most + ", to learn how memory grows");
  move(point, target, answer);
}

// Of the moves towards `goal` that double the work at most, the one whose memory is least known.
WorkPair Predictive::lesson(const WorkPair& goal, double limit, double leak_ahead) const {
  const auto scaled = [](std::int64_t value, double factor) {
    return static_cast<std::int64_t>(std::lround(std::floor(static_cast<double>(value) * factor)));
  };
  const double size_power = pairs_.work({1, 4}) > 4.5 ? 2 : 1;
  const double size_factor = std::pow(kLesson, 1 / size_power);
  const WorkPair moves[] = {
      {scaled(current_.batch, kLesson), current_.size},
      {current_.batch, scaled(current_.size, size_factor)},
      {scaled(current_.batch, std::sqrt(kLesson)), scaled(current_.size, std::sqrt(size_factor))}};
  WorkPair chosen = current_;
  double least_known = 0;
  for (const WorkPair& wanted : moves) {
    WorkPair pair = pairs_.snapped(wanted);
    if (goal.batch >= current_.batch) pair.batch = std::min(pair.batch, goal.batch);
    if (goal.size >= current_.size) pair.size = std::min(pair.size, goal.size);
    if (pair == current_ || !fits(pair, limit, leak_ahead)) continue;
    if (state_.steady.deviation(pair) <= least_known) continue;
    chosen = pair;
    least_known = state_.steady.deviation(pair);
  }
  return chosen;
}

void Predictive::recover(const TunerQuestion& question, const Observation& observation, TunerAnswer& answer) {
  const WorkPair failed = pairs_.of(question.ran_at());
  const MemoryView& memory = observation.memory;
  const bool knows_law = !state_.steady.empty();
  const double predicted = knows_law ? state_.base + state_.steady.expected(failed) : 0;
  const double capacity_before = state_.capacity;
  if (observation.reading == observation.iteration) {
    if (memory.device_free) {
      state_.capacity = std::min(1.0, share_of_total(memory.reserved + *memory.device_free, memory));
    }
    state_.retries = memory.alloc_retries;
    state_.reading = observation.reading;
  }
  if (holds_its_waste(memory, memory.peak_reserved)) state_.is_waste_held = true;
  ++state_.recoveries;
  ++state_.failures_in_a_row;
  state_.hold = options_.adjustment_frequency;
  answer.empty_cache = true;
  answer.reason =
      "oom at " + pair_text(failed) + " with " + ratio(state_.base) + " allocated between steps: ";
  const auto note_failed = [&] {
    state_.failed.remove_if([&](const auto& one) { return at_or_beyond(one.pair, failed); });
    state_.failed.push({failed, state_.capacity - state_.base, kBelowFailure * predicted});
  };
  const std::string for_good = ", nothing at or beyond it again unless memory is given back";
  if (!at_or_beyond(current_, failed)) {  // batches fetched before the last change still come
    note_failed();
    state_.dwell = {};
    answer.reason += "to " + pair_text(current_) + for_good;
    return;
  }
  PairBox box = pairs_.box();
  box.high = {std::max(current_.batch, box.low.batch), std::max(current_.size, box.low.size)};
  WorkPair target = smaller_blindly(current_);
  if (knows_law) {
    const double most = std::min(limit(), backed_off(state_.failures_in_a_row) * predicted);
    target = best(box, most, 0).value_or(box.low);
  }
  target.batch = std::min(target.batch, current_.batch);
  target.size = std::min(target.size, current_.size);
  state_.goes_back = was_outlier(failed, target, question, memory, capacity_before);
  if (!state_.goes_back) note_failed();
  state_.dwell = {};
  answer.reason += target == failed ? "nothing is left to shrink"
                   : state_.goes_back
                       ? std::to_string(state_.tried_well) +
                             " steps ran well there, so it was an outlier; to " + pair_text(target) +
                             " for " + std::to_string(state_.hold) + " steps"
                       : "to " + pair_text(target) + for_good;
  if (!(target == current_)) return move(question.point, target, answer);
  if (++state_.failures_at_floor < options_.oom_floor_limit) return;
  answer.end_run = true;
  answer.reason = "oom: " + std::to_string(state_.failures_at_floor) +
                  " steps in a row failed at the smallest pair " + pair_text(failed) + "; the run ends here";
}

// A step that fails costs itself; a smaller pair costs a share of every step. Where so many ran well that the
// smaller pair would have cost more, the failure was a sample's or a stranger's and not the pair's. It was
// the pair's where the process had the whole card and the step asked for no more than others: fragments. What
// fails on the way back says as little about its own pair.
bool Predictive::was_outlier(const WorkPair& failed, const WorkPair& target, const TunerQuestion& question,
                             const MemoryView& memory, double capacity_before) {
  if (state_.goes_back && !(failed == state_.tried)) return true;
  if (!(failed == state_.tried)) {
    state_.tried = failed;
    state_.tried_well = 0;
    state_.tried_failures = 0;
  }
  const bool is_known = failed == state_.dwell.pair() && state_.dwell.is_steady();
  if (is_known) state_.tried_well += state_.dwell.readings();
  ++state_.tried_failures;
  if (!is_known || state_.capacity < capacity_before - kOtherRoom) return false;
  const double cost = -gain_over(target, failed);
  const double usual = state_.base + state_.dwell.steady() + state_.outlier;
  const bool took_more =
      share_of_total(memory.peak_allocated + question.asked, memory) > kMoreThanUsual * usual;
  const bool had_all = share_of_total(memory.peak_reserved, memory) > kWholeCard * state_.capacity;
  const bool is_rare = cost * static_cast<double>(state_.tried_well) >
                       kWorthReturning * static_cast<double>(state_.tried_failures);
  return is_rare && (took_more || !had_all);
}

// Whether a step took the whole card and allocated much less of it, though the cache was flushed within it.
bool Predictive::holds_its_waste(const MemoryView& memory, Bytes reserved) const {
  const auto peak = static_cast<double>(memory.peak_allocated);
  return share_of_total(reserved, memory) > kWholeCard * state_.capacity &&
         static_cast<double>(reserved) > options_.assumed_fragmentation * peak;
}

// After a step that flushed the cache: whether the flush gave nothing back, or what live tensors can hold of
// it beside the peak is more than there is. The next step may find no room then.
bool Predictive::is_squeezed(const MemoryView& memory) const {
  const double peak = share_of_total(memory.peak_allocated, memory);
  const double held = std::min((state_.own_fragmentation - 1) * peak, state_.base);
  return holds_its_waste(memory, memory.reserved) || peak + held > state_.capacity;
}

// From a pair that was a step too far, to the one before or a little below.
bool Predictive::retreat(const Point& point, TunerAnswer& answer) {
  if (!std::exchange(state_.is_squeezed, false)) return false;
  const double most = kBelowFailure * need(current_, 0);
  PairBox box = pairs_.box();
  box.high = current_;
  WorkPair target = best(box, std::min(limit(), most), 0).value_or(state_.came_from);
  if (gain_over(state_.came_from, target) > -kNotMuchLess) target = state_.came_from;
  if (target == current_) return false;
  state_.failed.push({current_, state_.capacity - state_.base, most});
  answer.reason = "back to " + pair_text(target) + ": a first step at " + pair_text(current_) +
                  " flushed the cache that had been emptied for it, and the next may find no room";
  move(point, target, answer);
  return true;
}

bool Predictive::go_back(const Point& point, TunerAnswer& answer) {
  if (!state_.goes_back || state_.hold > 0) return false;
  state_.goes_back = false;
  if (state_.tried == current_) return false;
  answer.reason = "back to " + pair_text(state_.tried) + ", where " + std::to_string(state_.tried_well) +
                  " steps ran well and " + std::to_string(state_.tried_failures) + " failed";
  answer.delta = pairs_.delta(point, state_.tried);
  answer.empty_cache = true;
  state_.is_own_cache = true;
  ++state_.adjustments;
  state_.has_held = false;
  current_ = state_.tried;
  return true;
}

// Where to go while nothing is known but that it was too much.
WorkPair Predictive::smaller_blindly(const WorkPair& pair) const {
  if (pair.batch > pairs_.box().low.batch) return pairs_.snapped({pair.batch / 2, pair.size});
  return pairs_.snapped({pair.batch, pair.size * 7 / 10});
}

std::optional<WorkPair> Predictive::best(const PairBox& box, double limit, double leak_ahead) const {
  const auto allowed = [&](const WorkPair& pair) { return fits(pair, limit, leak_ahead); };
  const auto value = [&](const WorkPair& pair) { return score(pair); };
  return PairSearch{box, allowed, value}.run();
}

// Where no parameter turns round.
PairBox Predictive::straight_box() const {
  PairBox box = pairs_.box();
  if (state_.batch_direction > 0) box.low.batch = current_.batch;
  if (state_.batch_direction < 0) box.high.batch = current_.batch;
  if (state_.size_direction > 0) box.low.size = current_.size;
  if (state_.size_direction < 0) box.high.size = current_.size;
  return box;
}

double Predictive::need(const WorkPair& pair, double leak_ahead) const {
  return std::max(steady_need(pair, leak_ahead), first_need(pair, leak_ahead));
}

double Predictive::steady_need(const WorkPair& pair, double leak_ahead) const {
  return with_rest(state_.steady.upper(pair, options_.confidence), leak_ahead);
}

// 0 at a pair that had its first step.
double Predictive::first_need(const WorkPair& pair, double leak_ahead) const {
  if (state_.first.has_measured(pair)) return 0;
  return with_rest(state_.first.upper(pair, options_.confidence), leak_ahead);
}

double Predictive::with_rest(double step, double leak_ahead) const {
  return state_.base + state_.leak.rate() * leak_ahead + step * (1 + options_.confidence * state_.noise);
}

bool Predictive::fits(const WorkPair& pair, double limit, double leak_ahead) const {
  const double steady = steady_need(pair, leak_ahead);
  if (steady > limit) return false;  // half of a search's pairs: the other law is not asked
  const double upper = std::max(steady, first_need(pair, leak_ahead));
  return upper <= limit && !is_out_of_reach(pair, upper) && leaves_room(pair, upper);
}

bool Predictive::is_out_of_reach(const WorkPair& pair, double need) const {
  return std::any_of(state_.failed.begin(), state_.failed.end(), [&](const auto& failed) {
    return at_or_beyond(pair, failed.pair) || (failed.limit > 0 && need > failed.limit);
  });
}

double Predictive::limit() const {
  const double band =
      options_.target_vram_usage + (options_.bound_at == BoundAt::band ? options_.safety_margin : 0);
  return std::min(band, state_.capacity / state_.fragmentation - state_.outlier);
}

// A cache that steps at one pair have filled shows how much more than it allocates a larger one reserves. A
// segment without a live tensor is given back when memory is short: no more of the difference counts than is
// allocated between steps, unless flushes have been seen to give nothing back.
double Predictive::growing_fragmentation() const {
  if (state_.is_waste_held) return state_.own_fragmentation;
  if (state_.stay_peak <= 0) return 1;
  return 1 + std::min(state_.own_fragmentation - 1, state_.base / state_.stay_peak);
}

double Predictive::score(const WorkPair& pair) const { return state_.score.of(pair, pairs_.work(pair)); }

double Predictive::gain_over(const WorkPair& pair, const WorkPair& other) const {
  return state_.score.gain(pair, pairs_.work(pair), other, pairs_.work(other));
}

std::int64_t Predictive::turns_to(const WorkPair& target) const {
  const std::int64_t batch = sign(target.batch - current_.batch);
  const std::int64_t size = sign(target.size - current_.size);
  return (batch * state_.batch_direction < 0 ? 1 : 0) + (size * state_.size_direction < 0 ? 1 : 0);
}

void Predictive::move(const Point& point, const WorkPair& target, TunerAnswer& answer) {
  const std::int64_t batch = sign(target.batch - current_.batch);
  const std::int64_t size = sign(target.size - current_.size);
  answer.delta = pairs_.delta(point, target);
  state_.turns += turns_to(target);
  if (batch != 0) state_.batch_direction = batch;
  if (size != 0) state_.size_direction = size;
  // Blocks of the old shape only stand in the way of a larger one.
  if (pairs_.work(target) > pairs_.work(current_)) answer.empty_cache = true;
  state_.is_own_cache = answer.empty_cache;
  state_.came_from = pairs_.work(target) > pairs_.work(current_) ? current_ : WorkPair{0, 0};
  state_.is_squeezed = false;
  state_.moves = std::min<std::int64_t>(state_.moves + 1, kMostMoves);
  ++state_.adjustments;
  state_.has_held = false;
  current_ = target;
}

}  // namespace vramlab
