// Jobs of a queue whose steps a policy decides: a tuner by the rules of a training run, a composer by those
// of an epoch. The host's side of one attempt.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/runs/job.hpp"
#include "sim/runs/job_process.hpp"
#include "sim/runs/step_runner.hpp"

namespace vramlab {

/// The processes of a job, one a card.
using JobProcesses = std::vector<std::unique_ptr<JobOnCard>>;

/// One attempt of such a job. Every step is asked for when it begins and told when it ends; who performs it
/// decides when that is.
class SteeredJob {
 public:
  virtual ~SteeredJob() = default;

  /// The step that begins now, which stays valid until the next one; null where the attempt is over, whether
  /// it `ended` early or not. What the policy wants of the processes first is done, and adds to `delay`.
  virtual const StepPrograms::Program* begin_step(const JobProcesses& processes, SimTime now,
                                                  SimTime& delay) = 0;

  /// It is over; `step` is the failed one of the processes where one failed. Returns the time that obeying
  /// the policy took.
  virtual SimTime end_step(const JobOnCard::Step& step, const JobProcesses& processes, SimTime now) = 0;

  /// Why the attempt ends before its last step; empty if it does not.
  [[nodiscard]] const std::string& ended() const { return ended_; }
  [[nodiscard]] const JobTuning& record() const { return record_; }

 protected:
  std::string ended_;
  JobTuning record_;
};

/// A job that runs `steps` steps of its model, from `start` on, which is moved into the tuner's bounds;
/// `programs` are the model's. All must outlive the job.
std::unique_ptr<SteeredJob> tuned_job(const JobTuner& tuner, const WorkloadModel& model,
                                      StepPrograms& programs, Point start, std::int64_t steps, SimTime now);

/// A job that runs epochs of batches, from the first sample on.
std::unique_ptr<SteeredJob> composed_job(const JobComposer& composer, SimTime now);

}  // namespace vramlab
