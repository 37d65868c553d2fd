// The sentences of `predictive`, each with the figures it rests on.
#pragma once

#include <string>

#include "policies/memory_law.hpp"

namespace vramlab {

/// The figures of one evaluation; memory in shares of the total.
struct PredictiveFigures {
  WorkPair now;
  double peak = 0;     ///< of steady steps at `now`, what is there between steps included
  double need = 0;     ///< the same with noise and the leak until the next look
  double limit = 0;    ///< what it may be
  double leak = 0;     ///< per step
  double outlier = 0;  ///< largest seen
  bool under_pressure = false;
};

std::string pair_text(const WorkPair& pair);

/// "grow: …"; `expected` and `upper` are those of `target`, `gain` a share of the objective.
std::string grow_reason(const PredictiveFigures& figures, const WorkPair& target, double expected,
                        double upper, double gain);
/// The same for a small first move that teaches how memory follows from the parameters.
std::string lesson_reason(const PredictiveFigures& figures, const WorkPair& target, double upper);
std::string shrink_reason(const PredictiveFigures& figures, const WorkPair& target, double upper);
std::string hold_reason(const PredictiveFigures& figures, const std::string& why);
std::string recovery_reason(const WorkPair& failed, const WorkPair& target, double used);
std::string floor_reason(const WorkPair& pair, std::int64_t failures);
std::string snap_reason(const WorkPair& from, const WorkPair& to, std::int64_t unit);

/// Log lines.
std::string leak_line(double per_step, std::int64_t rises);
std::string outlier_line(const WorkPair& pair, double stray, double steady);
std::string shift_line(const WorkPair& pair, double before, double now);
std::string error_line(const WorkPair& pair);

}  // namespace vramlab
