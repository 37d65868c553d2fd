// 10,000 iterations of the policies of a scenario, and of one policy on steps of some 2,000 tensors, with the
// step cache and through the full allocator.
#include <algorithm>

#include <benchmark/benchmark.h>

#include "lab/kinds/training/run.hpp"
#include "lab/model/file.hpp"

namespace vramlab {
namespace {

void run_scenario(benchmark::State& state, const std::string& name, bool use_step_cache) {
  TrainingScenario scenario = read_training(read_document(VRAMLAB_SOURCE_DIR "/scenarios/" + name + ".json"));
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

// Mixed tasks: a batch of twelve samples, fitted from recordings of real training.
void run_2000_tensors(benchmark::State& state, bool use_step_cache) {
  const auto model = load_model_file(VRAMLAB_SOURCE_DIR "/models/mixed-tasks.json");
  TrainingSetup setup;
  setup.model = model.get();
  setup.bounds = model->parameters();
  setup.start = {5, 4, 3};
  setup.iterations = 10000;
  setup.process.card_total = 80_GiB;
  setup.process.use_step_cache = use_step_cache;
  for (auto _ : state) {
    const TrainingRun run =
        run_training(setup, [&] { return builtin_policies()->tuners.make({.use = "fixed"}, setup.bounds); });
    state.counters["iterations"] = static_cast<double>(run.iterations.size());
  }
  const StepProgram step = model->step(setup.start);
  state.counters["tensors"] =
      static_cast<double>(std::count_if(step.ops.begin(), step.ops.end(), [](const MemoryOp& op) {
        return op.kind == MemoryOpKind::allocate || op.kind == MemoryOpKind::workspace;
      }));
}

BENCHMARK_CAPTURE(run_2000_tensors, step_cache, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_2000_tensors, full, false)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace vramlab
