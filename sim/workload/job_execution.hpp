// How admitted jobs hold memory and get on: the fidelity of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "policies/job_demand.hpp"
#include "sim/workload/cluster_books.hpp"
#include "sim/workload/job.hpp"
#include "sim/workload/job_events.hpp"

namespace vramlab {

/// Where a job was admitted, and how large.
struct Admission {
  const std::vector<CardId>* cards = nullptr;
  Bytes need = 0;  ///< promised on each card
  BatchSplit split;
};

enum class JobProgress : std::uint8_t { goes_on, phase_done, out_of_memory };

/// Runs the phases of admitted jobs. What it waits for it puts on the clock as an event `work` of the job.
class JobExecution {
 public:
  virtual ~JobExecution() = default;

  /// The job begins `phase`, its first after an admission or the one after that.
  virtual JobProgress enter(std::uint32_t job, const Admission& admission, std::size_t phase) = 0;

  /// The event `work` of the job has come.
  virtual JobProgress resume(std::uint32_t job, const Admission& admission) = 0;

  /// The job ends here, whatever the reason: all its memory goes back. It need not have begun.
  virtual void leave(std::uint32_t job, const Admission& admission) = 0;

  /// What it holds on the card where it holds most.
  [[nodiscard]] virtual Bytes used(std::uint32_t job) const = 0;

  /// Memory of strangers came to a card or went, and so much of its time, in thousandths.
  virtual void strangers_changed(CardId /*card*/, std::int64_t /*busy_change*/) {}
};

/// Fidelity `declared`: a phase takes its memory at once, all of it or nothing, and lasts as long as it says.
std::unique_ptr<JobExecution> declared_execution(const std::vector<JobSpec>& jobs, ClusterBooks& books,
                                                 JobClock& clock);

/// Bytes that `phase` really uses on each card at `admission`, where the job has no model.
Bytes flat_use(const JobPhase& phase, const Admission& admission);

}  // namespace vramlab
