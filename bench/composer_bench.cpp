// Composing batches from 1,000,000 samples of three tasks, without running them: every batch takes what the
// recorded task mix would, in a straight line.
#include <benchmark/benchmark.h>

#include "core/random.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

std::vector<Sample> mixed_samples(std::int64_t count) {
  Random random{1};
  std::vector<Sample> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto draw = random.between(0, 9);
    const std::uint32_t task = draw < 4 ? 0 : draw < 7 ? 1 : 2;
    const std::int32_t images = task == 0 ? 1 : static_cast<std::int32_t>(task) + 2;
    const std::int64_t length = random.between(32 << task, 96 << task);
    samples.push_back({task, images, length, length + 49 * images});
  }
  return samples;
}

void compose(benchmark::State& state, const char* use, const char* profile) {
  const auto samples = mixed_samples(state.range(0));
  std::int64_t batches = 0;
  for (auto _ : state) {
    const auto composer = make_composer({use, profile, {}, ""}, {"T1", "T2", "T3"});
    Candidates candidates{samples.size(), 1, 0, true};
    batches = 0;
    const Observation observation{.memory = {.allocated = 1_GiB, .total = 8_GiB}};
    while (candidates.left() > 0) {
      const auto answer =
          composer->decide({.samples = samples, .candidates = candidates, .most = 1 << 20}, observation);
      candidates.take(answer.batch);
      BatchShape shape;
      for (const SampleId id : answer.batch) shape.add(samples[id]);
      composer->told({.batch = answer.batch,
                      .shape = shape,
                      .rise = static_cast<Bytes>(35'000'000 * shape.images + 560'000 * shape.positions())});
      ++batches;
    }
  }
  state.counters["batches"] = static_cast<double>(batches);
  state.counters["samples/s"] =
      benchmark::Counter(static_cast<double>(samples.size()), benchmark::Counter::kIsIterationInvariantRate);
}

#define VRAMLAB_COMPOSER_BENCH(name, use, profile) \
  BENCHMARK_CAPTURE(compose, name, use, profile)->Arg(1'000'000)->Unit(benchmark::kMillisecond)

VRAMLAB_COMPOSER_BENCH(fixed, "planned-batches", "fixed");
VRAMLAB_COMPOSER_BENCH(length_bucketed, "planned-batches", "length-bucketed");
VRAMLAB_COMPOSER_BENCH(faithful, "memory-aware-sampler", "faithful");
VRAMLAB_COMPOSER_BENCH(table, "memory-aware-sampler", "table");
VRAMLAB_COMPOSER_BENCH(mixed, "memory-aware-sampler", "mixed");
VRAMLAB_COMPOSER_BENCH(dense, "memory-aware-sampler", "dense");

}  // namespace
}  // namespace vramlab
