#include "policies/predictive_reasons.hpp"

#include "policies/figures.hpp"

namespace vramlab {
namespace {

std::string ratio(double value) { return fixed_point(value, 3); }

std::string percent(double share) { return fixed_point(100 * share, 1) + " %"; }

// Where things stand, as every sentence begins.
std::string standing(const PredictiveFigures& figures) {
  std::string text = "peak " + ratio(figures.peak) + " at " + pair_text(figures.now);
  if (figures.leak > 0) text += ", leak " + fixed_point(figures.leak, 6) + " a step";
  if (figures.outlier > 0) text += ", outliers up to " + ratio(figures.outlier);
  return text;
}

}  // namespace

std::string pair_text(const WorkPair& pair) {
  return "(" + std::to_string(pair.batch) + ", " + std::to_string(pair.size) + ")";
}

std::string grow_reason(const PredictiveFigures& figures, const WorkPair& target, double expected,
                        double upper, double gain) {
  return "grow: " + standing(figures) + "; " + pair_text(target) + " should take " + ratio(expected) +
         ", at most " + ratio(upper) + " of " + ratio(figures.limit) + ", and does " + percent(gain) +
         " more";
}

std::string lesson_reason(const PredictiveFigures& figures, const WorkPair& target, double upper) {
  return "grow: " + standing(figures) + "; a small move to " + pair_text(target) + ", at most " +
         ratio(upper) + " of " + ratio(figures.limit) + ", to learn how memory grows";
}

std::string shrink_reason(const PredictiveFigures& figures, const WorkPair& target, double upper) {
  const std::string why = figures.under_pressure ? "steady steps flush the cache"
                                                 : ratio(figures.need) + " is above " + ratio(figures.limit);
  return "shrink: " + standing(figures) + ", " + why + "; " + pair_text(target) + " takes at most " +
         ratio(upper);
}

std::string hold_reason(const PredictiveFigures& figures, const std::string& why) {
  return "hold: " + standing(figures) + " of " + ratio(figures.limit) + ", " + why;
}

std::string recovery_reason(const WorkPair& failed, const WorkPair& target, double used) {
  std::string text = "oom at " + pair_text(failed) + " with " + ratio(used) + " allocated between steps";
  if (target == failed) return text + ": nothing is left to shrink";
  return text + ": to " + pair_text(target) + ", nothing at or beyond it again unless memory is given back";
}

std::string floor_reason(const WorkPair& pair, std::int64_t failures) {
  return "oom: " + std::to_string(failures) + " steps in a row failed at the smallest pair " +
         pair_text(pair) + "; the run ends here";
}

std::string snap_reason(const WorkPair& from, const WorkPair& to, std::int64_t unit) {
  return "snap: size " + std::to_string(from.size) + " is no multiple of " + std::to_string(unit) + "; to " +
         pair_text(to);
}

std::string leak_line(double per_step, std::int64_t rises) {
  return "leak: what is allocated between steps rose " + std::to_string(rises) +
         " times and never fell, by " + fixed_point(per_step, 6) + " of the total a step";
}

std::string outlier_line(const WorkPair& pair, double stray, double steady) {
  return "outlier: one step at " + pair_text(pair) + " took " + ratio(stray) + " instead of " +
         ratio(steady) + ", and nothing more stays between steps";
}

std::string shift_line(const WorkPair& pair, double before, double now) {
  return "shift: steps at " + pair_text(pair) + " take " + ratio(now) + " now instead of " + ratio(before);
}

std::string error_line(const WorkPair& pair) {
  return "an error that is not OOM at " + pair_text(pair) + ": its reading is not used, nothing shrinks";
}

}  // namespace vramlab
