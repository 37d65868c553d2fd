// 10,000 iterations of four policies on the super-resolution workload, through the full allocator and with
// the step cache.
#include <benchmark/benchmark.h>

#include "lab/comparison.hpp"

namespace vramlab {
namespace {

Scenario ratchet(bool use_step_cache) {
  Scenario scenario = read_scenario(VRAMLAB_SOURCE_DIR "/scenarios/ratchet.json");
  scenario.setup.iterations = 10000;
  scenario.setup.process.use_step_cache = use_step_cache;
  return scenario;
}

void run_all(benchmark::State& state, bool use_step_cache) {
  const Scenario scenario = ratchet(use_step_cache);
  for (auto _ : state) {
    for (const PolicyEntry& entry : scenario.policies) {
      benchmark::DoNotOptimize(run_policy(scenario, entry).metrics);
    }
  }
  state.counters["policies"] = static_cast<double>(scenario.policies.size());
}

BENCHMARK_CAPTURE(run_all, step_cache, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_all, full_allocator, false)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace vramlab
