// The search for the largest batch that fits, each size probed with real steps; and an epoch at what it
// found.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/contract/batch_sessions.hpp"
#include "sim/runs/card_runner.hpp"
#include "sim/runs/stepped_run.hpp"

namespace vramlab {

/// What a batch must fit: training, validation, generation.
struct SearchPhase {
  std::string name;
  Point point;                           ///< its batch is replaced by the one probed
  const WorkloadModel* model = nullptr;  ///< null = the setup's; another one has a process of its own
};

/// What becomes of the tensors of a step that ran out of memory.
enum class FailedTensors : std::uint8_t {
  freed,           ///< as the step unwinds
  until_clean_up,  ///< with the exception that refers to them (K2-11)
  never            ///< something refers to them for good
};

/// A parameter that is drawn anew for each step of a job, evenly within a range (lengths that vary).
struct StepDraw {
  std::size_t parameter = 0;
  std::int64_t low = 1;
  std::int64_t high = 1;
};

/// Batches at which a step fails with `message`.
struct DeclaredFailure {
  std::int64_t from = 1;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
  std::string message;
};

/// Everything a search is made of but its policy.
struct BatchSearchSetup {
  const WorkloadModel* model = nullptr;
  std::size_t parameter = 0;        ///< which of its parameters is the batch
  std::int64_t low = 1;             ///< smallest batch allowed
  std::int64_t high = 1;            ///< largest: of the model, the data set, or a cap
  std::vector<SearchPhase> phases;  ///< at least one; the first is the setup's model
  std::vector<ProcessSetup> cards;  ///< at least one
  FailedTensors failed_tensors = FailedTensors::freed;
  std::optional<DeclaredFailure> failure;
  std::vector<OtherProcess> others;
  Faults faults;  ///< of the step with that number in the search; those that a clean-up could not end
  std::int64_t max_steps = 0;   ///< steps after which a search is given up, its last probe done; 0 = no limit
  SimTime start{0};             ///< when it begins, by the clock of `others`
  std::vector<StepDraw> draws;  ///< what varies from step to step of the job; empty = nothing
  std::uint64_t seed = 1;       ///< of the varied steps of probes
  MakePerformer make_performer{};  ///< empty = StepRunners, on pretended cards
};

/// Whether `message` speaks of a lack of memory: "CUDA out of memory. …" of the allocator, "CUDA error: out
/// of memory" of the driver (K2-05). Whatever else a step fails with says nothing about its size.
bool is_out_of_memory(std::string_view message);

/// One probe as it went.
struct SearchTrial {
  Probe probe;
  std::vector<std::int64_t> steps;  ///< done in each phase, in the setup's order; a failed one counts
  SimTime duration{0};              ///< clean-up included
};

/// What came out of a search.
struct BatchSearchRun {
  std::vector<SearchTrial> trials;
  SearcherAnswer answer;  ///< never `probe`
  SimTime duration{0};
  std::int64_t ooms = 0;
};

/// Runs a search with `policy`. Sizes outside the setup's range are moved into it. Before each probe the
/// cache is emptied and the peaks are reset; after it, however it ended, everything its steps left is freed.
/// Deterministic on pretended cards. Throws InputError if the weights alone do not fit.
BatchSearchRun run_batch_search(const BatchSearchSetup& setup, Searcher& policy);

/// One probe of `batch` in fresh processes.
SearchTrial probe_batch(const BatchSearchSetup& setup, std::int64_t batch,
                        const ProbeDepth& depth = {3, true});

/// The largest batch that runs `steps` steps in every phase without a failure, found by the same probes, if
/// memory grows with the batch; 0 if the smallest does not. Always on pretended cards, without faults, and
/// beside the other processes that are there at `setup.start`.
std::int64_t largest_batch(const BatchSearchSetup& setup, std::int64_t steps = 3);

/// Steps of one length bucket; without buckets there is one.
struct EpochBucket {
  Point point;                  ///< its batch included
  std::vector<StepDraw> draws;  ///< lengths that vary within the bucket
};

/// An epoch at the batch sizes that a search found: does what fitted once fit all the time.
struct SearchEpochSetup {
  std::int64_t iterations = 0;
  std::int64_t phases_every = 0;  ///< steps between the search's further phases; 0 = they never run
  std::uint64_t seed = 1;
  std::vector<EpochBucket> buckets;  ///< one is drawn for each step
  SimTime start{0};                  ///< when it begins, by the clock of the search's other processes
};

/// What came of it.
struct SearchEpochRun {
  std::int64_t iterations = 0;  ///< steps begun
  std::int64_t ooms = 0;        ///< steps that ran out of memory, phases included
  std::int64_t phase_ooms = 0;  ///< of these, in phases
  std::int64_t retries = 0;     ///< allocations that first had to release the cache
  std::int64_t samples = 0;     ///< of the steps that did not fail
  double peak_share = 0;        ///< highest allocated over the total, of the fullest card
  double reserved_share = 0;
  SimTime duration{0};
};

/// Runs an epoch in a fresh process. It ends early after ten failed steps in a row.
SearchEpochRun run_search_epoch(const BatchSearchSetup& search, const SearchEpochSetup& setup);

}  // namespace vramlab
