// A job that wants memory of shared cards, and what became of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/workload_model.hpp"
#include "policies/contract/batch_sessions.hpp"
#include "policies/contract/cards.hpp"
#include "policies/contract/jobs.hpp"
#include "policies/contract/tuner.hpp"

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

/// What moves the parameters of a job's model from step to step.
struct JobTuner {
  std::string name;                              ///< of the policy and its profile, for people
  std::function<std::unique_ptr<Tuner>()> make;  ///< a new one for every attempt
  ParameterSpace bounds;                         ///< within the model's range; the host enforces them
};

/// What puts a job's batches together: its work is epochs over a data set.
struct JobComposer {
  std::string name;                                 ///< of the policy and its profile, for people
  std::function<std::unique_ptr<Composer>()> make;  ///< a new one for every attempt
  std::shared_ptr<const BatchModel> model;
  std::shared_ptr<const BatchModel> checkpointed;  ///< the same with activation checkpointing; null = none
  std::shared_ptr<const std::vector<Sample>> samples;
  EpochData data;  ///< of `samples`
  std::int64_t epochs = 1;
  BatchLimits limits{};  ///< what a batch may take, beside what the policy says
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
  std::optional<JobTuner> tuner;        ///< only with a model, one phase and no variants
  std::optional<JobComposer> composer;  ///< only without a model and a tuner, with one phase and no variants
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
  crashed,        ///< its owner died
  gave_up         ///< its tuner or composer could not go on, though memory was not short
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

/// A moment of a job that a tuner moves, or whose batches a composer puts together: its point is their size.
struct TunedMoment {
  enum class Kind : std::uint8_t {
    start,   ///< an attempt begins at `point`
    change,  ///< the next step is the first at `point`
    failure  ///< the step at `point` ran out of memory
  };
  Kind kind = Kind::start;
  SimTime time{0};
  std::int64_t step = 0;  ///< after which, counted from 1 in each attempt
  Point point;
  std::string reason;  ///< of a change
};

/// What the tuner or the composer of a job did, in all its attempts.
struct JobTuning {
  std::int64_t changes = 0;
  std::int64_t failed_steps = 0;
  std::int64_t samples = 0;  ///< trained on in the last attempt; what earlier ones did is lost
  std::int64_t pixels = 0;   ///< of these; one for each sample of a composer
  std::vector<TunedMoment>
      course;  ///< in the order in which they happened; the last `point` is the final one

  /// Adds a later attempt.
  void add(const JobTuning& later) {
    changes += later.changes;
    failed_steps += later.failed_steps;
    samples = later.samples;
    pixels = later.pixels;
    course.insert(course.end(), later.course.begin(), later.course.end());
  }
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
  BatchSplit split;                 ///< of the last start
  std::vector<CardId> cards;        ///< of the last start
  Bytes need = 0;                   ///< promised on each card, at the last start
  Bytes most_used = 0;              ///< on the card where it took most, in any attempt
  bool overran = false;             ///< it held more than it was promised, at some moment
  std::optional<JobTuning> tuning;  ///< of one that has a tuner and began
  std::string reason;  ///< of its end or, with the bytes that decide, why it runs smaller or still waits
};

}  // namespace vramlab
