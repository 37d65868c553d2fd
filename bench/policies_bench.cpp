// What policies cost: one decision of `predictive`, and batches composed from a million samples.
#include <benchmark/benchmark.h>

#include "core/random.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

// `predictive`: a step that is only noted, a look that holds, and the dearest one, which searches all pairs
// for a better one.
constexpr Bytes kTotal = 12'884'901'888;

ParameterSpace pairs() { return {{{"batch", 2, 64}, {"lq", 32, 256}}}; }

std::unique_ptr<Tuner> new_tuner(std::int64_t frequency) {
  return builtin_policies()->tuners.make({"predictive", "", {{"adjustment_frequency", frequency, {}}}, ""},
                                         pairs());
}

Observation observe(std::int64_t iteration, const Point& point) {
  const auto work = static_cast<double>(point[0] * point[1] * point[1]);
  const double wobble = 1 + 0.001 * static_cast<double>(iteration % 7);  // so that every look learns
  const auto peak = static_cast<Bytes>((0.02 + 0.92 * wobble * work / (12.0 * 128 * 128)) * 12e9);
  return {iteration,
          std::chrono::seconds(iteration),
          {.allocated = 60'000'000,
           .peak_allocated = peak,
           .reserved = peak + 500'000'000,
           .peak_reserved = peak + 500'000'000,
           .total = kTotal,
           .device_free = kTotal - peak - 500'000'000},
          iteration};
}

/// A run of steps, each with a decision.
struct Run {
  std::unique_ptr<Tuner> tuner;
  Point point{8, 64};
  std::int64_t iteration = 0;

  void step() {
    ++iteration;
    const TunerAnswer answer = tuner->decide({point}, observe(iteration, point));
    for (std::size_t i = 0; i < answer.delta.size(); ++i) point[i] += answer.delta[i];
  }
};

void run(benchmark::State& state, std::int64_t frequency) {
  Run run{new_tuner(frequency)};
  for (int i = 0; i < 100; ++i) run.step();  // settled
  for (auto _ : state) run.step();
}

void a_step_between_looks(benchmark::State& state) { run(state, 1'000'000); }
void a_run_that_looks_every_25_steps(benchmark::State& state) { run(state, 25); }
void a_look_at_every_step(benchmark::State& state) { run(state, 1); }

// A run from its first step until it has settled, moves included; the time is that of one decision.
void from_start_to_settled(benchmark::State& state) {
  for (auto _ : state) {
    Run run{new_tuner(25)};
    for (int i = 0; i < 40; ++i) run.step();
  }
  state.counters["decisions"] =
      benchmark::Counter(40, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(a_step_between_looks);
BENCHMARK(a_run_that_looks_every_25_steps);
BENCHMARK(a_look_at_every_step);
BENCHMARK(from_start_to_settled);

// Composing batches from 1,000,000 samples of three tasks, without running them: every batch takes what the
// recorded task mix would, in a straight line.
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
    const auto composer = builtin_policies()->composers.make({use, profile, {}, ""}, {"T1", "T2", "T3"});
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
VRAMLAB_COMPOSER_BENCH(constant_token, "planned-batches", "constant-token");
VRAMLAB_COMPOSER_BENCH(length_bucketed, "planned-batches", "length-bucketed");
VRAMLAB_COMPOSER_BENCH(quadratic, "planned-batches", "quadratic");
VRAMLAB_COMPOSER_BENCH(longest_first, "planned-batches", "longest-first");
VRAMLAB_COMPOSER_BENCH(faithful, "memory-aware-sampler", "faithful");
VRAMLAB_COMPOSER_BENCH(table, "memory-aware-sampler", "table");
VRAMLAB_COMPOSER_BENCH(mixed, "memory-aware-sampler", "mixed");
VRAMLAB_COMPOSER_BENCH(dense, "memory-aware-sampler", "dense");

}  // namespace
}  // namespace vramlab
