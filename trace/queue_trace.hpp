// The time line of a run of the job queue: cards, stays of jobs, and the queue as a whole.
#pragma once

#include <string>
#include <vector>

#include "sim/workload/job_queue_loop.hpp"

namespace vramlab {

/// One line a change of a card, as JSON or CSV: time_s, card, and in bytes used (by jobs), foreign, promised,
/// then jobs, alert. `run` must have kept its moments; so for all below.
std::string cards_jsonl(const JobQueueRun& run);
std::string cards_csv(const JobQueueRun& run);

/// One line a stay of a job, as CSV: name, cards (with spaces between), from_s, to_s, need, most_used, oom.
std::string stays_csv(const std::vector<JobSpec>& jobs, const JobQueueRun& run);

/// One line a change of the queue, as CSV, with the names of P3.8 in bytes: time_s, total_memory, used_memory
/// (strangers included), free_memory, utilization, active_jobs, pending_jobs, total_allocated (promised),
/// pending_requirements, cards_over_90.
std::string monitor_csv(const JobQueueRun& run);

/// A process a card with counters of used, foreign and promised bytes, and a slice a stay, in as many tracks
/// as jobs overlap; and a process for the queue with counters of active and pending jobs.
std::string queue_perfetto(const std::string& title, const std::vector<JobSpec>& jobs,
                           const JobQueueRun& run);

}  // namespace vramlab
