#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/metric.hpp"
#include "policies/contract/policy_set.hpp"
#include "sim/runs/card_runner.hpp"

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
  run.adjustments.insert(run.adjustments.end(), later.adjustments.begin(), later.adjustments.end());
  run.final_point = std::move(later.final_point);
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

// Whether a batch of `sample` alone runs in a fresh process, and once more behind itself.
bool fits_alone(const EpochSetup& setup, const BatchModel& model, const Sample& sample) {
  std::vector<ProcessSetup> cards{setup.process};
  cards.insert(cards.end(), setup.more_cards.begin(), setup.more_cards.end());
  for (ProcessSetup& card : cards) card.use_step_cache = false;
  CardRunner runner{model.build(), cards};
  const StepProgram program = model.step({&sample, 1});
  for (int i = 0; i < 2; ++i) {
    if (runner.run_program(program, 1, {}).result == StepResult::oom) return false;
  }
  return true;
}

// Samples of the data set that no policy can train on. Of one task and number of images those with more
// tokens take more memory.
std::int64_t count_misfits(const EpochScenario& scenario) {
  const auto fits = [&](const Sample& sample) {
    const BatchModel* other = scenario.checkpointed.get();
    return fits_alone(scenario.setup, *scenario.model, sample) ||
           (other != nullptr && fits_alone(scenario.setup, *other, sample));
  };
  std::map<std::pair<std::uint32_t, std::int32_t>, std::vector<Sample>> groups;
  for (const Sample& sample : scenario.setup.samples) {
    groups[{sample.task, sample.images}].push_back(sample);
  }
  std::int64_t misfits = 0;
  for (auto& [which, samples] : groups) {
    std::ranges::sort(samples, {}, &Sample::tokens);
    misfits += samples.end() - std::ranges::partition_point(samples, fits);
  }
  return misfits;
}

EpochSetup setup_of(const EpochScenario& scenario, const std::string& label) {
  EpochSetup setup = scenario.setup;
  if (const auto found = scenario.tuners.find(label); found != scenario.tuners.end()) {
    const BatchTuner& tuner = found->second;
    setup.tuning = tuner.tuning;
    setup.tuning->make = [&] { return scenario.known->tuners.make(tuner.choice, tuner.tuning.space); };
  }
  return setup;
}

}  // namespace

EpochResult run_composer(const EpochScenario& scenario, const PolicyEntry& entry, BatchListener* listener) {
  EpochSetup setup = setup_of(scenario, entry.label);
  setup.listener = listener;
  EpochResult result{named_after(entry), run_restarted(setup, scenario, entry.choice)};
  const auto all = std::ssize(setup.samples) * setup.epochs;
  const bool left_out = result.run.ended_early.empty() && result.run.totals.samples < all;
  if (left_out) result.misfits = count_misfits(scenario);
  result.metrics = epoch_metrics(setup, result.run, result.misfits, scenario.model->timed());
  return result;
}

void add_regrets(const EpochScenario& scenario, const EpochResult& oracle,
                 std::vector<EpochResult>& results) {
  const std::vector<Metric> best = oracle.metrics;  // it may be one of the results
  for (EpochResult& one : results) {
    one.metrics =
        epoch_metrics(setup_of(scenario, one.label), one.run, one.misfits, scenario.model->timed(), &best);
  }
}

std::vector<EpochResult> compare_composers(const EpochScenario& scenario,
                                           const std::vector<std::string>& labels) {
  return run_policies(scenario, labels,
                      [&](const PolicyEntry& entry) { return run_composer(scenario, entry); });
}

}  // namespace vramlab
