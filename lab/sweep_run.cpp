#include "lab/sweep_run.hpp"

#include <utility>

#include "lab/parallel.hpp"
#include "lab/scenario_kinds.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

// What `work` finds wrong is said with the combination it is about.
template <class Work>
auto at_point(const Sweep& sweep, const SweepRun& run, const Work& work) {
  try {
    return work();
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& one : problems) one.what += " (at " + sweep.point_text(run) + ")";
    throw InputError(std::move(problems));
  }
}

}  // namespace

void run_sweep(const Sweep& sweep, const SweepOptions& options, SweepResults& results) {
  const auto stopped = [&] { return options.stop != nullptr && options.stop->load(); };
  std::vector<FiguresRun> runs(sweep.runs.size());
  for_each_index(runs.size(), options.threads, [&](std::size_t i) {
    if (results[i] || stopped()) return;
    const SweepRun& run = sweep.runs[i];
    runs[i] = at_point(sweep, run, [&] { return ready_figures(run.scenario, options.labels); });
  });
  for_each_index(runs.size(), options.threads, [&](std::size_t i) {
    if (!runs[i] || stopped()) return;
    results[i] = at_point(sweep, sweep.runs[i], runs[i]);
    runs[i] = nullptr;
    if (options.on_run) options.on_run();
  });
}

}  // namespace vramlab
