// Runs a sweep on several threads; the results do not depend on how many.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "lab/sweep_results.hpp"

namespace vramlab {

struct SweepOptions {
  std::vector<std::string> labels;  ///< policies to run; empty = all
  unsigned threads = 1;
  const std::atomic<bool>* stop = nullptr;  ///< when it turns true, runs that have not begun are left out
  std::function<void()> on_run;             ///< after each run, from any thread
};

/// Reads every combination that `results` does not have, and then runs them into it. Throws InputError, which
/// names the combination: before the first run if one of them is no good scenario, and after all runs if one
/// could not be made (weights that do not fit, for one); the others are in `results` then.
void run_sweep(const Sweep& sweep, const SweepOptions& options, SweepResults& results);

}  // namespace vramlab
