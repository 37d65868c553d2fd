// A job that wants memory of shared cards, and what became of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/workload_model.hpp"
#include "policies/contract/cards.hpp"
#include "policies/contract/jobs.hpp"

namespace vramlab {

/// A stretch of a job during which it holds the same memory.
struct JobPhase {
  SimTime duration{0};             ///< at least 1 ns; alone on its card, at the batch it declares
  std::optional<Bytes> fixed_use;  ///< really used on each card, batch aside; empty = as much as is promised
  Bytes use_per_sample = 0;        ///< really used for each sample of the batch it runs at
  std::optional<Bytes> need;       ///< asked for where a policy admits by phase; empty = the job's demand
  std::int64_t steps = 0;          ///< where the job has a model: optimizer steps, at least 1
  Point point;                     ///< where it has one: the model's parameters, the batch to be filled in
};

/// What a job runs where its steps are simulated.
struct JobModel {
  std::shared_ptr<const WorkloadModel> workload;
  std::size_t batch = 0;  ///< index of the batch among its parameters
};

/// Another way to run a job: JobDemand::variants has what it needs then.
struct JobVariant {
  std::vector<JobPhase> phases;  ///< as many as the job has
  std::optional<JobModel> model;
};

/// One job as it is submitted.
struct JobSpec {
  std::string name;
  SimTime arrival{0};
  JobDemand demand;                     ///< what it declares
  std::vector<JobPhase> phases;         ///< at least one
  std::optional<JobModel> model;        ///< empty = it holds memory and runs, nothing more
  std::vector<JobVariant> variants;     ///< as many as its demand has
  std::int32_t busy_milli = 1000;       ///< how much of a card its steps keep busy, in thousandths
  std::optional<SimTime> expected;      ///< how long it says it runs; empty = the sum of its phases
  SimTime crash_after{SimTime::max()};  ///< running time after which its owner dies and tells nobody

  [[nodiscard]] const std::vector<JobPhase>& phases_of(std::size_t variant) const {
    return variant == 0 ? phases : variants[variant - 1].phases;
  }
  [[nodiscard]] const std::optional<JobModel>& model_of(std::size_t variant) const {
    return variant == 0 ? model : variants[variant - 1].model;
  }

  [[nodiscard]] SimTime duration() const {
    SimTime sum{0};
    for (const JobPhase& phase : phases) sum += phase.duration;
    return sum;
  }
};

enum class JobOutcome : std::uint8_t {
  pending,  ///< still waits or runs: never at the end of a run, except without any event left for it
  completed,
  refused,        ///< at submit: it can never fit
  wait_timeout,   ///< no memory within the time a job may wait
  job_timeout,    ///< ended for running too long
  out_of_memory,  ///< failed for good after an OOM
  crashed         ///< its owner died
};

/// One stay of a job on cards: from its admission until its memory is back.
struct JobStay {
  std::uint32_t job = 0;
  std::vector<CardId> cards;
  SimTime from{0};
  SimTime to{0};
  Bytes need = 0;        ///< promised on each card
  Bytes most_used = 0;   ///< on the card where it took most
  bool ran_out = false;  ///< it ended in an OOM
};

/// What became of one job.
struct JobRecord {
  JobOutcome outcome = JobOutcome::pending;
  SimTime first_start{SimTime::max()};  ///< max = never
  SimTime end{0};                       ///< when it left the system
  SimTime waited{0};                    ///< in all
  SimTime wasted{0};                    ///< running time of attempts that ended in an OOM, times cards
  std::int32_t starts = 0;
  std::int32_t ooms = 0;
  BatchSplit split;           ///< of the last start
  std::vector<CardId> cards;  ///< of the last start
  std::string reason;  ///< of its end or, with the bytes that decide, why it runs smaller or still waits
};

}  // namespace vramlab
