// The openb list of pods on its 6,212 cards, once, and 10 and 100 times as many pods: the list again and
// again, one after the other (repeat), or that many times denser in time (dense: the queue grows long).
#include <filesystem>

#include <benchmark/benchmark.h>

#include "policies/contract/policy_set.hpp"
#include "recordings/jobs/job_lists.hpp"
#include "sim/runs/job_queue_loop.hpp"

namespace vramlab {
namespace {

JobQueueSetup openb(std::int64_t copies, bool dense) {
  const std::filesystem::path folder = VRAMLAB_SOURCE_DIR "/../shared/data/jobs";
  OpenbTrace trace =
      read_openb(folder / "openb_pod_list_default.csv", folder / "openb_node_list_gpu_node.csv");
  SimTime last{0};
  for (const JobSpec& job : trace.jobs) last = std::max(last, job.arrival);
  JobQueueSetup setup{.cluster = std::move(trace.cluster)};
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    for (const JobSpec& job : trace.jobs) {
      setup.jobs.push_back(job);
      if (!dense) setup.jobs.back().arrival += last * copy;
    }
  }
  return setup;
}

void run(benchmark::State& state, const std::string& profile, bool dense) {
  if (!std::filesystem::exists(VRAMLAB_SOURCE_DIR "/../shared/data/jobs")) {
    state.SkipWithError("the public job traces are not there");
    return;
  }
  const JobQueueSetup setup = openb(state.range(0), dense);
  std::int64_t pending = 0;
  for (auto _ : state) {
    const auto policy = builtin_policies()->admitters.make({"job-queue",
                                                            profile,
                                                            {{"safety_margin_mb", std::int64_t{0}, {}},
                                                             {"wait_timeout_s", 0.0, {}},
                                                             {"job_timeout_s", 0.0, {}},
                                                             {"max_concurrent_jobs", std::int64_t{0}, {}}},
                                                            ""});
    const JobQueueRun result = run_job_queue(setup, *policy);
    pending = result.most_pending;
  }
  state.counters["jobs"] = static_cast<double>(setup.jobs.size());
  state.counters["most_pending"] = static_cast<double>(pending);
}

void once(benchmark::internal::Benchmark* bench) { bench->Unit(benchmark::kMillisecond)->Iterations(1); }

#define VRAMLAB_QUEUE_BENCH(name, profile)                                                         \
  BENCHMARK_CAPTURE(run, name##_repeat, profile, false)->Apply(once)->ArgsProduct({{1, 10, 100}}); \
  BENCHMARK_CAPTURE(run, name##_dense, profile, true)->Apply(once)->ArgsProduct({{10, 100}})

VRAMLAB_QUEUE_BENCH(strict_fifo, "strict-fifo");
VRAMLAB_QUEUE_BENCH(best_effort, "best-effort");
VRAMLAB_QUEUE_BENCH(backfill, "backfill");
BENCHMARK_CAPTURE(run, faithful, "faithful", false)->Apply(once)->Arg(1);
BENCHMARK_CAPTURE(run, no_admission, "no-admission", false)->Apply(once)->Arg(1);

}  // namespace
}  // namespace vramlab
