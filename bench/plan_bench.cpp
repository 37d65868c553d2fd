// Plans of published lists of buffers (skipped where they are absent) and of 10,000 and more made-up ones.
// The counters say how far above its bound each plan is, in percent.
#include <filesystem>
#include <optional>
#include <string>

#include <benchmark/benchmark.h>

#include "core/random.hpp"
#include "plan/planner.hpp"
#include "recordings/scripts/buffer_list.hpp"

namespace vramlab {
namespace {

const std::filesystem::path kBuffers = std::filesystem::path(VRAMLAB_SOURCE_DIR) / "../shared/data/buffers";

void plan(benchmark::State& state, const std::vector<Buffer>& buffers, const PlanQuestion& question) {
  MemoryPlan plan;
  for (auto _ : state) plan = plan_memory(buffers, question);
  state.counters["gap %"] = 100 * plan.gap();
}

void published(benchmark::State& state, const std::string& name, std::optional<Bytes> capacity) {
  if (!std::filesystem::exists(kBuffers / name)) return state.SkipWithError("not there");
  InputFile file{kBuffers / name};
  plan(state, read_buffer_list(file).buffers, {.capacity = capacity});
}

// Half of them short, the others of any length; sizes over five orders of magnitude.
void made_up(benchmark::State& state) {
  Random random{1};
  std::vector<Buffer> buffers;
  const std::int64_t count = state.range(0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t length = random.between(1, random.between(0, 1) == 0 ? 20 : random.between(20, 2000));
    buffers.push_back(
        {i, i + length, static_cast<Bytes>(512 * random.between(1, 1 << random.between(1, 17)))});
  }
  plan(state, buffers, {});
}
BENCHMARK(made_up)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

[[maybe_unused]] const bool kPublished = [] {
  for (char name = 'A'; name <= 'K'; ++name) {
    const std::string file = std::string("minimalloc_") + name + ".1048576.csv";
    benchmark::RegisterBenchmark(file.c_str(), published, file, Bytes{1'048'576})
        ->Unit(benchmark::kMillisecond);
  }
  for (const std::string file : {"idealloc/G_1.csv", "idealloc/resnet50.csv", "idealloc/pangu_2.6B.csv"}) {
    benchmark::RegisterBenchmark(file.c_str(), published, file, std::nullopt)->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace vramlab
