// Plans of published lists of buffers (skipped where they are absent) and of 10,000 and more made-up ones,
// beside best fit in the order of sizes (best_fit, the first thing to try). The counters say how far above
// its bound, or above the load, each is, in percent.
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>

#include <benchmark/benchmark.h>

#include "core/random.hpp"
#include "plan/planner.hpp"
#include "recordings/scripts/buffer_list.hpp"

namespace vramlab {
namespace {

const std::filesystem::path kBuffers = std::filesystem::path(VRAMLAB_SOURCE_DIR) / "../shared/data/buffers";

/// What best fit in the order of sizes needs: each buffer goes into the smallest gap that holds it between
/// those placed before that live at the same time.
Bytes best_fit(const std::vector<Buffer>& buffers) {
  struct Placed {
    Bytes offset;
    std::size_t buffer;
  };
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return buffers[i].size; });
  std::vector<Placed> placed;  // by offset
  Bytes top = 0;
  for (const std::size_t i : order) {
    const Buffer& buffer = buffers[i];
    Bytes end = 0;  // of all that lies below
    Bytes best = 0;
    Bytes least = kMostBufferBytes;
    for (const Placed& other : placed) {
      const Buffer& there = buffers[other.buffer];
      if (there.upper <= buffer.lower || buffer.upper <= there.lower) continue;
      if (other.offset >= end + buffer.size && other.offset - end < least) {
        least = other.offset - end;
        best = end;
      }
      end = std::max(end, other.offset + there.size);
    }
    const Bytes offset = least == kMostBufferBytes ? end : best;
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::offset), {offset, i});
    top = std::max(top, offset + buffer.size);
  }
  return top;
}

void fit(benchmark::State& state, const std::vector<Buffer>& buffers) {
  Bytes top = 0;
  for (auto _ : state) top = best_fit(buffers);
  const Bytes load = timeline_of(buffers).peak;
  state.counters["gap %"] = 100 * (static_cast<double>(top) / static_cast<double>(load) - 1);
}

void plan(benchmark::State& state, const std::vector<Buffer>& buffers, const PlanQuestion& question) {
  MemoryPlan plan;
  for (auto _ : state) plan = plan_memory(buffers, question);
  state.counters["gap %"] = 100 * plan.gap();
}

void published_best_fit(benchmark::State& state, const std::string& name) {
  if (!std::filesystem::exists(kBuffers / name)) return state.SkipWithError("not there");
  InputFile file{kBuffers / name};
  fit(state, read_buffer_list(file).buffers);
}

void published(benchmark::State& state, const std::string& name, std::optional<Bytes> capacity) {
  if (!std::filesystem::exists(kBuffers / name)) return state.SkipWithError("not there");
  InputFile file{kBuffers / name};
  plan(state, read_buffer_list(file).buffers, {.capacity = capacity});
}

// Half of them short, the others of any length; sizes over five orders of magnitude.
std::vector<Buffer> made_up_buffers(std::int64_t count) {
  Random random{1};
  std::vector<Buffer> buffers;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t length = random.between(1, random.between(0, 1) == 0 ? 20 : random.between(20, 2000));
    buffers.push_back(
        {i, i + length, static_cast<Bytes>(512 * random.between(1, 1 << random.between(1, 17)))});
  }
  return buffers;
}

void made_up_best_fit(benchmark::State& state) { fit(state, made_up_buffers(state.range(0))); }
BENCHMARK(made_up_best_fit)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);

void made_up(benchmark::State& state) { plan(state, made_up_buffers(state.range(0)), {}); }
BENCHMARK(made_up)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

[[maybe_unused]] const bool kPublished = [] {
  for (char name = 'A'; name <= 'K'; ++name) {
    const std::string file = std::string("minimalloc_") + name + ".1048576.csv";
    benchmark::RegisterBenchmark(file.c_str(), published, file, Bytes{1'048'576})
        ->Unit(benchmark::kMillisecond);
  }
  for (const std::string file : {"idealloc/G_1.csv", "idealloc/resnet50.csv", "idealloc/pangu_2.6B.csv"}) {
    benchmark::RegisterBenchmark(("best_fit/" + file).c_str(), published_best_fit, file)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(file.c_str(), published, file, std::nullopt)->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace vramlab
