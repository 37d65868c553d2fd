// How the time of a workload grows with its size: each runs at n, 4n and 16n, and the exponent is the slope
// between the last two, log4(t(16n) / t(4n)), where what does not grow counts least. Names of workloads as
// arguments run these alone; a name and a number run that workload once at this size, for callgrind.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "lab/kinds/training/run.hpp"
#include "lab/whatif/whatif.hpp"
#include "policies/contract/policy_set.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/others/bfc_allocator.hpp"
#include "sim/memory/others/driver_allocators.hpp"
#include "sim/memory/segments/sim_segments.hpp"
#include "sim/runs/job_queue_loop.hpp"

namespace vramlab {
namespace {

struct Card {
  SimulatedCard card{kNeverFull, 0};
  SimSegments segments{card};
};

/// A caching allocator on a card that is never full.
struct Rig : Card {
  CachingAllocator allocator;
  explicit Rig(const char* conf = "") : allocator(segments, {.settings = parse_allocator_settings(conf)}) {}
};

// Blocks that another stream uses are freed, and nobody ever synchronizes.
void deferred_frees(std::size_t n) {
  Rig rig;
  for (std::size_t i = 0; i < n; ++i) {
    const BlockId block = rig.allocator.allocate(4096, kDefaultStream)->block;
    rig.allocator.record_stream(block, 1);
    rig.allocator.free(block);
  }
}

// Every one waits for a moment, behind the last 1,000.
void finished_frees(std::size_t n) {
  constexpr std::size_t kBehind = 1000;
  Rig rig;
  std::vector<BlockId> blocks(n);
  for (std::size_t i = 0; i < n; ++i) {
    blocks[i] = rig.allocator.allocate(4096, kDefaultStream)->block;
    rig.allocator.record_stream(blocks[i], 1 + i % 3);
    rig.allocator.free(blocks[i]);
    if (i >= kBehind) rig.allocator.finish_events(blocks[i - kBehind]);
  }
}

// Requests that each get a segment of their own; every second goes and others come.
Bytes own_segment(std::size_t i) { return 10_MiB + i * 7919 % 40 * 1_MiB; }

void own_segments(std::size_t n) {
  Rig rig;
  std::vector<BlockId> blocks;
  for (std::size_t i = 0; i < n; ++i)
    blocks.push_back(rig.allocator.allocate(own_segment(i), kDefaultStream)->block);
  for (std::size_t i = 0; i < n; i += 2) rig.allocator.free(blocks[i]);
  rig.allocator.empty_cache();
  for (std::size_t i = 0; i < n; i += 2) rig.allocator.allocate(own_segment(i + 1), kDefaultStream);
}

void smallest(std::size_t n) {
  ClientProgram program;
  for (std::size_t i = 0; i < n; ++i) {
    const auto block = static_cast<ProgramBlock>(i);
    program.actions.push_back({.bytes = own_segment(i), .block = block, .kind = ClientAction::Kind::alloc});
    if (i % 2 == 1) program.actions.push_back({.block = block - 1, .kind = ClientAction::Kind::free});
  }
  program.blocks = static_cast<ProgramBlock>(n);
  answer_whatif({program}, {.confs = {""}, .smallest = true});
}

// A replay of a recording whose segments lie where the recorded ones did.
void recorded_places(std::size_t n) {
  std::vector<SegmentPlace> places(n);
  for (std::size_t i = 0; i < n; ++i) places[i] = {(Address{1} << 46) - (i + 1) * 20_MiB, 20_MiB};
  SimulatedCard card{kNeverFull, 0};
  SimSegments segments{card, DriverAddresses::of_recording(places)};
  std::vector<Address> bases;
  for (std::size_t i = 0; i < n; ++i) bases.push_back(*segments.reserve(20_MiB));
  for (const Address base : bases) segments.release(base);
}

void streams(std::size_t n) {
  Rig rig;
  std::vector<BlockId> blocks;
  for (std::size_t i = 0; i < n; ++i) blocks.push_back(rig.allocator.allocate(4096, n - i)->block);
  for (const BlockId block : blocks) rig.allocator.free(block);
}

void streams_expandable(std::size_t n) {
  Rig rig("expandable_segments:True");
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < n; ++i) rig.allocator.allocate(2_MiB, n - i);
  }
}

void pools(std::size_t n) {
  Rig rig;
  std::vector<PoolId> pools;
  for (std::size_t i = 0; i < n; ++i) {
    pools.push_back(rig.allocator.new_mem_pool());
    rig.allocator.enter_mem_pool(pools.back());
    const BlockId block = rig.allocator.allocate(4096, kDefaultStream)->block;
    rig.allocator.leave_mem_pool(pools.back());
    rig.allocator.free(block);
  }
  for (const PoolId pool : pools) rig.allocator.delete_mem_pool(pool);
}

// n blocks, of which every second is freed in any order, and as many come again.
template <class Allocator>
void refill(Allocator& allocator, std::size_t n, const std::function<Bytes(std::size_t)>& size) {
  std::mt19937_64 random{1};
  std::vector<BlockId> blocks;
  for (std::size_t i = 0; i < n; ++i) blocks.push_back(allocator.allocate(size(i), kDefaultStream)->block);
  std::vector<std::size_t> freed;
  for (std::size_t i = 0; i < n; i += 2) freed.push_back(i);
  std::shuffle(freed.begin(), freed.end(), random);
  for (const std::size_t i : freed) allocator.free(blocks[i]);
  for (const std::size_t i : freed) allocator.allocate(size(i), kDefaultStream);
}

Bytes equal_size(std::size_t) { return 4096; }
Bytes mixed_size(std::size_t i) { return 512 * (1 + i * 7919 % 2000); }

void refill_caching(std::size_t n) {
  Rig rig;
  refill(rig.allocator, n, equal_size);
}

void refill_mixed(std::size_t n) {
  Rig rig;
  refill(rig.allocator, n, mixed_size);
}

// Pages given back all over an expandable segment, and mapped again.
void refill_expandable(std::size_t n) {
  Rig rig("expandable_segments:True");
  std::vector<BlockId> blocks;
  for (std::size_t i = 0; i < n; ++i) blocks.push_back(rig.allocator.allocate(20_MiB, kDefaultStream)->block);
  for (std::size_t i = 0; i < n; i += 2) rig.allocator.free(blocks[i]);
  rig.allocator.empty_cache();
  for (std::size_t i = 0; i < n; i += 2) rig.allocator.allocate(22_MiB, kDefaultStream);
}

void refill_direct(std::size_t n) {
  Card card;
  DirectAllocator allocator(card.segments);
  refill(allocator, n, mixed_size);
}

void refill_async(std::size_t n) {
  Card card;
  AsyncAllocator allocator(card.segments);
  refill(allocator, n, mixed_size);
}

void refill_bfc(std::size_t n) {
  Card card;
  BfcAllocator allocator(card.segments, {.limit = 1024_GiB});
  refill(allocator, n, mixed_size);
}

// The best fixed choice of batch and length within a range of n by n.
void oracle(std::size_t n) {
  TrainingScenario scenario = read_training(read_document(VRAMLAB_SOURCE_DIR "/scenarios/h100-12gib.json"));
  scenario.setup.iterations = 1000;
  for (Parameter& range : scenario.setup.bounds.parameters) range.high = static_cast<std::int64_t>(n);
  find_oracle(scenario);
}

// n jobs that all ask for something else, more than 1,000 cards can take.
void queue(std::size_t n, const char* profile) {
  JobQueueSetup setup;
  setup.cluster.pools = {{80_GiB}};
  for (CardId card = 0; card < 1000; ++card) setup.cluster.nodes.push_back({0, card, 1});
  std::mt19937_64 random{1};
  for (std::size_t i = 0; i < n; ++i) {
    JobSpec job;
    job.name = std::to_string(i);
    job.arrival = SimTime{static_cast<std::int64_t>(i) * 1'000'000};
    job.demand.fixed = 10_GiB + random() % 60_GiB;
    job.phases = {{.duration = std::chrono::seconds(10 + random() % 100)}};
    setup.jobs.push_back(job);
  }
  const auto policy = builtin_policies()->admitters.make({.use = "job-queue", .profile = profile});
  run_job_queue(setup, *policy);
}
void queue_strict(std::size_t n) { queue(n, "strict-fifo"); }
void queue_best_effort(std::size_t n) { queue(n, "best-effort"); }
void queue_backfill(std::size_t n) { queue(n, "backfill"); }

struct Workload {
  const char* name;
  std::size_t n;
  void (*run)(std::size_t n);
};

constexpr Workload kWorkloads[] = {
    {"deferred_frees", 2000, deferred_frees},
    {"finished_frees", 4000, finished_frees},
    {"own_segments", 500, own_segments},
    {"smallest", 250, smallest},
    {"recorded_places", 1000, recorded_places},
    {"streams", 250, streams},
    {"streams_expandable", 250, streams_expandable},
    {"pools", 500, pools},
    {"refill_caching", 2000, refill_caching},
    {"refill_mixed", 2000, refill_mixed},
    {"refill_expandable", 500, refill_expandable},
    {"refill_direct", 1000, refill_direct},
    {"refill_async", 1000, refill_async},
    {"refill_bfc", 2000, refill_bfc},
    {"oracle", 64, oracle},
    {"queue_strict", 2500, queue_strict},
    {"queue_best_effort", 2500, queue_best_effort},
    {"queue_backfill", 2500, queue_backfill},
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// The shortest of at least three runs, and of as many as take a fifth of a second.
double seconds_of(const Workload& workload, std::size_t n) {
  double least = 1e9;
  double sum = 0;
  for (int i = 0; (i < 3 && sum < 3) || sum < 0.2; ++i) {
    const double begin = cpu_seconds();
    workload.run(n);
    const double took = cpu_seconds() - begin;
    least = std::min(least, took);
    sum += took;
  }
  return least;
}

}  // namespace
}  // namespace vramlab

int main(int argc, char** argv) {
  using namespace vramlab;
  if (const std::size_t n = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0; n > 0) {
    for (const Workload& workload : kWorkloads)
      if (workload.name == std::string(argv[1])) workload.run(n);
    return 0;
  }
  std::puts(
      "| workload | n | at n | at 4n | at 16n | exponent |\n| --- | ---: | ---: | ---: | ---: | ---: |");
  for (const Workload& workload : kWorkloads) {
    if (argc > 1 && std::find(argv + 1, argv + argc, std::string(workload.name)) == argv + argc) continue;
    double times[3];
    for (int i = 0; i < 3; ++i) times[i] = seconds_of(workload, workload.n << (2 * i));
    std::printf("| %s | %zu | %.2f ms | %.2f ms | %.2f ms | %.2f |\n", workload.name, workload.n,
                1e3 * times[0], 1e3 * times[1], 1e3 * times[2],
                std::log(times[2] / times[1]) / std::log(4.0));
    std::fflush(stdout);
  }
}
