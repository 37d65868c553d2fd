// 10,000 iterations of the policies of a scenario, with the step cache and through the full allocator.
#include <benchmark/benchmark.h>

#include "lab/comparison.hpp"

namespace vramlab {
namespace {

void run_scenario(benchmark::State& state, const std::string& name, bool use_step_cache) {
  Scenario scenario = read_scenario(VRAMLAB_SOURCE_DIR "/scenarios/" + name + ".json");
  scenario.setup.iterations = 10000;
  scenario.setup.process.use_step_cache = use_step_cache;
  std::erase_if(scenario.policies, [](const PolicyEntry& entry) {
    return entry.choice.use != "fixed" && entry.choice.use != "dual-optimizer";
  });
  for (auto _ : state) {
    for (const PolicyEntry& entry : scenario.policies) {
      benchmark::DoNotOptimize(run_policy(scenario, entry).metrics);
    }
  }
  state.counters["policies"] = static_cast<double>(scenario.policies.size());
}

BENCHMARK_CAPTURE(run_scenario, h100_step_cache, "h100-12gib", true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_scenario, h100_full, "h100-12gib", false)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK_CAPTURE(run_scenario, ratchet_step_cache, "ratchet", true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_scenario, ratchet_full, "ratchet", false)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace vramlab
