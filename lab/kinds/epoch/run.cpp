#include <algorithm>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/metric.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

namespace {

void add_statistics(std::vector<Statistic>& sums, const std::vector<Statistic>& later) {
  for (const Statistic& one : later) {
    const auto same = std::ranges::find(sums, one.name, &Statistic::name);
    same == sums.end() ? sums.push_back(one) : void(same->value += one.value);
  }
}

void go_on(EpochRun& run, EpochRun later) {
  run.totals.add(later.totals);
  add_statistics(run.statistics, later.statistics);
  run.gradient_shares = std::move(later.gradient_shares);  // these are part of the state
  run.alloc_retries += later.alloc_retries;
  run.phases.add(later.phases);
  run.faults.add(later.faults);
  run.state = std::move(later.state);
  run.ended_early = std::move(later.ended_early);
  run.complete = later.complete;
}

EpochRun run_restarted(EpochSetup setup, const EpochScenario& scenario, const PolicyChoice& choice) {
  const auto composer = [&] { return scenario.known->composers.make(choice, setup.tasks); };
  setup.stop_after = scenario.restart_every;
  EpochRun run = run_epochs(setup, *composer());
  while (!run.complete && run.ended_early.empty()) {
    setup.start = run.state;
    go_on(run, run_epochs(setup, *composer()));
  }
  return run;
}

}  // namespace

EpochResult run_composer(const EpochScenario& scenario, const PolicyEntry& entry, BatchListener* listener) {
  EpochSetup setup = scenario.setup;
  setup.listener = listener;
  EpochResult result{named_after(entry), run_restarted(setup, scenario, entry.choice)};
  result.metrics = epoch_metrics(setup, result.run);
  return result;
}

std::vector<EpochResult> compare_composers(const EpochScenario& scenario,
                                           const std::vector<std::string>& labels) {
  return run_policies(scenario, labels,
                      [&](const PolicyEntry& entry) { return run_composer(scenario, entry); });
}

}  // namespace vramlab
