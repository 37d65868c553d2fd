// One decision of `predictive`: a step that is only noted, a look that holds, and the dearest one, which
// searches all pairs for a better one.
#include <benchmark/benchmark.h>

#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

constexpr Bytes kTotal = 12'884'901'888;

ParameterSpace pairs() { return {{{"batch", 2, 64}, {"lq", 32, 256}}}; }

std::unique_ptr<Tuner> new_tuner(std::int64_t frequency) {
  return make_tuner({"predictive", "", {{"adjustment_frequency", frequency, {}}}, ""}, pairs());
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

void run(benchmark::State& state, std::int64_t frequency) {
  const auto tuner = new_tuner(frequency);
  Point point{8, 64};
  std::int64_t iteration = 0;
  const auto step = [&] {
    ++iteration;
    TunerAnswer answer = tuner->decide({point}, observe(iteration, point));
    for (std::size_t i = 0; i < answer.delta.size(); ++i) point[i] += answer.delta[i];
  };
  for (int i = 0; i < 100; ++i) step();  // settled
  for (auto _ : state) step();
}

void a_step_between_looks(benchmark::State& state) { run(state, 1'000'000); }
void a_run_that_looks_every_25_steps(benchmark::State& state) { run(state, 25); }
void a_look_at_every_step(benchmark::State& state) { run(state, 1); }

// A run from its first step until it has settled, moves included; the time is that of one decision.
void from_start_to_settled(benchmark::State& state) {
  for (auto _ : state) {
    const auto tuner = new_tuner(25);
    Point point{8, 64};
    for (std::int64_t iteration = 1; iteration <= 40; ++iteration) {
      TunerAnswer answer = tuner->decide({point}, observe(iteration, point));
      for (std::size_t i = 0; i < answer.delta.size(); ++i) point[i] += answer.delta[i];
    }
  }
  state.counters["decisions"] =
      benchmark::Counter(40, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(a_step_between_looks);
BENCHMARK(a_run_that_looks_every_25_steps);
BENCHMARK(a_look_at_every_step);
BENCHMARK(from_start_to_settled);

}  // namespace
}  // namespace vramlab
