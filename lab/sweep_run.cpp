#include "lab/sweep_run.hpp"

#include <utility>

#include "lab/parallel.hpp"
#include "lab/scenario_kinds.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

FiguresRun readied(const Sweep& sweep, const SweepRun& run, const std::vector<std::string>& labels) {
  try {
    return ready_figures(run.scenario, labels);
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
    if (!results[i] && !stopped()) runs[i] = readied(sweep, sweep.runs[i], options.labels);
  });
  for_each_index(runs.size(), options.threads, [&](std::size_t i) {
    if (!runs[i] || stopped()) return;
    results[i] = runs[i]();
    runs[i] = nullptr;
    if (options.on_run) options.on_run();
  });
}

}  // namespace vramlab
