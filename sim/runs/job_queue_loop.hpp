// Jobs on shared cards: they arrive, wait, run, fail and leave, and a policy says who may start where.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/contract/admitter.hpp"
#include "sim/runs/cluster_books.hpp"
#include "sim/runs/job.hpp"
#include "sim/runs/job_execution.hpp"

namespace vramlab {

/// Everything a run of a queue is made of but its policy.
struct JobQueueSetup {
  ClusterSetup cluster;
  std::vector<JobSpec> jobs;  ///< in any order; equal arrivals queue in this order
  std::vector<Stranger> strangers;
  SimTime start_up{0};                ///< from a job's admission until it takes its memory
  std::optional<StepFidelity> steps;  ///< simulate every job's steps; empty = fidelity `declared`
  bool keep_moments = false;          ///< record every change of every card, every stay, the queue over time
};

/// What came out of it.
struct JobQueueRun : ClusterRecord {
  std::vector<JobRecord> jobs;         ///< in the order of the setup
  SimTime begin{0};                    ///< first arrival
  SimTime end{0};                      ///< when the last job left
  std::int64_t most_active = 0;        ///< jobs that held a promise at once
  std::int64_t most_pending = 0;       ///< jobs that waited at once
  Bytes most_promised = 0;             ///< over all cards at once
  std::string ended_early;             ///< why the policy could not go on; empty = the queue ran to its end
  std::vector<JobStay> stays;          ///< in the order in which they begin
  std::vector<QueueMoment> monitored;  ///< one a change
};

/// Runs the jobs of `setup` at its fidelity. All bookkeeping is the host's: an answer that names
/// a job that does not wait, or cards of two nodes, ends the run. Deterministic.
/// Throws InputError for a job without phases or with a phase of no duration, and where steps are simulated
/// for one whose model has a phase without steps; and for a tuner where it cannot be (JobSpec::tuner).
JobQueueRun run_job_queue(const JobQueueSetup& setup, Admitter& policy);

}  // namespace vramlab
