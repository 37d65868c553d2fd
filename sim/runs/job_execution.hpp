// How admitted jobs hold memory and get on, as declared or step by step; and the clock they do it by.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/contract/jobs.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/runs/cluster_books.hpp"
#include "sim/runs/job.hpp"
#include "sim/runs/job_process.hpp"
#include "sim/runs/step_runner.hpp"

namespace vramlab {

struct JobEvent {
  enum class Kind : std::uint8_t {
    arrival,
    pump,      ///< look at the queue, after everything else of this moment
    poll,      ///< look at it because it is time to
    deadline,  ///< the job has waited as long as it may
    take,      ///< its start-up is over: it takes its memory
    work,      ///< what the job's execution waited for
    crash,
    limit,  ///< the job has taken as long as it may
    lease,
    stranger
  };
  Kind kind = Kind::pump;
  std::uint32_t job = 0;    ///< or stranger
  std::uint32_t epoch = 0;  ///< of the job, when the event was scheduled: a later one makes it void
};

using JobClock = Simulation<JobEvent>;

/// Where a job was admitted, and how large.
struct Admission {
  const std::vector<CardId>* cards = nullptr;
  Bytes need = 0;  ///< promised on each card
  BatchSplit split;
  bool is_limit = false;  ///< `need` is also the most that its process on each card can take
};

enum class JobProgress : std::uint8_t { goes_on, phase_done, out_of_memory, gave_up };

/// Runs the phases of admitted jobs. What it waits for it puts on the clock as an event `work` of the job.
class JobExecution {
 public:
  virtual ~JobExecution() = default;

  /// The job begins `phase`, its first after an admission or the one after that.
  virtual JobProgress enter(std::uint32_t job, const Admission& admission, std::size_t phase) = 0;

  /// The event `work` of the job has come.
  virtual JobProgress resume(std::uint32_t job) = 0;

  /// The job ends here, whatever the reason: all its memory goes back. It need not have begun.
  virtual void leave(std::uint32_t job) = 0;

  /// What it holds on the card where it holds most.
  [[nodiscard]] virtual Bytes used(std::uint32_t job) const = 0;

  /// What the tuner or composer of the job did in this attempt; null where it has none or has not begun.
  [[nodiscard]] virtual const JobTuning* tuning(std::uint32_t /*job*/) const { return nullptr; }

  /// How far the card was from what was asked for where a job last ran out of memory, or why its policy gave
  /// up: sentences.
  [[nodiscard]] const std::string& shortage() const { return shortage_; }

  /// Memory of strangers came to a card or went, and this much of its time, in thousandths.
  virtual void strangers_changed(CardId /*card*/, std::int64_t /*busy_change*/) {}

 protected:
  /// A job wanted `size` on `card`, as it is now, beside `own` that it had there; `limit` is the most it may
  /// take, where there is one.
  void fell_short(CardId card, const CardView& view, Bytes size, Bytes own, std::optional<Bytes> limit = {});
  void say_shortage(std::string text) { shortage_ = std::move(text); }

 private:
  std::string shortage_;
};

/// Fidelity `declared`: a phase takes its memory at once, all of it or nothing, and lasts as long as it says.
std::unique_ptr<JobExecution> declared_execution(const std::vector<JobSpec>& jobs, ClusterBooks& books,
                                                 JobClock& clock);

/// What processes on shared cards start with.
struct StepFidelity {
  std::vector<Bytes> contexts;  ///< of one process, by pool of cards
  AllocatorOptions allocator;
  MakeJobCard make_card{};  ///< empty = pretended cards
};

/// Fidelity `steps`: a job's process on each of its cards opens a context, builds the model and performs step
/// after step; a step takes its memory as it begins. A job without a model holds blocks that sum up to what
/// it uses less the context. What a process frees stays cached, as in PyTorch, until the process ends.
///
/// A step lasts as the model says, times max(1, the sum of the busy shares of all jobs that compute on the
/// card, strangers included); for a job on several cards the slowest decides.
///
/// Steps that repeat are counted, not performed (JobOnCard::Step::settled); those of a job with a tuner or a
/// composer are performed one by one. A tuner is asked after each as in a training run (run_training), a
/// composer before each and told after it as in an epoch (run_epochs); they see the card as the job's process
/// does. A step that fails ends the attempt only where such a run would end: by the policy's answer, after
/// kMostFailuresInARow at unchanged parameters, or after kMostFailedBatchesInARow.
std::unique_ptr<JobExecution> step_execution(const std::vector<JobSpec>& jobs, const StepFidelity& fidelity,
                                             ClusterBooks& books, JobClock& clock);

/// How much longer steps take where jobs keep a card busy for `busy_milli` thousandths in all; in
/// thousandths.
constexpr std::int64_t stretch_milli(std::int64_t busy_milli) {
  return busy_milli > 1000 ? busy_milli : 1000;
}

}  // namespace vramlab
