// Jobs of a queue on a real card: each a process of its own, which performs the steps that it is sent.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cuda/card_performer.hpp"
#include "cuda/child_process.hpp"
#include "sim/runs/job_process.hpp"

namespace vramlab {

/// What performs the steps of a job in its process.
class JobStepper {
 public:
  virtual ~JobStepper() = default;
  virtual ExecutedStep run(const StepProgram& program, std::uint64_t shape) = 0;
  virtual void empty_cache() = 0;
  virtual void reset_peak() = 0;
  [[nodiscard]] virtual const MemoryStats& stats() const = 0;
  /// What the card has free now.
  [[nodiscard]] virtual Bytes free() const = 0;
  /// What its calls of the driver take by the times that the simulator goes by, all so far.
  [[nodiscard]] virtual SimTime driver_time() const = 0;
};

/// The job's side: obeys what a JobWorker sends on `in` (once "allocator", then "step", "empty", "reset" and
/// "look") and answers each with a line on `out`; returns 0 at the end of the input. Throws InternalError for
/// what it cannot read.
int serve_job(std::istream& in, std::ostream& out,
              const std::function<std::unique_ptr<JobStepper>(const AllocatorOptions&)>& make);

/// The same in real memory of the visible card number `device`, on standard input and output. Throws
/// InputError if there is no such card.
int run_job_worker(int device);

/// The hidden verb that runs it.
inline constexpr const char* kJobVerb = "perform-card-job";

/// A card that the jobs of a queue share. Its books are the scenario's: as much of the real card is kept
/// free as they say is, whatever contexts and this program take of it beyond them.
class CardOfJobs final : public JobCard {
 public:
  using StartJob = std::function<std::unique_ptr<ChildProcess>()>;

  /// `total` and `context` are the scenario's. Throws InputError if the real card is too small, or missing.
  CardOfJobs(Bytes total, Bytes context, std::shared_ptr<SharedCard> card, StartJob start_job);

  void set_others(Bytes bytes) override;
  std::unique_ptr<JobOnCard> start(const AllocatorOptions& options) override;

 private:
  friend class JobWorker;
  [[nodiscard]] Bytes free() const { return total_ - others_ - taken_; }

  Bytes total_;
  Bytes context_;
  std::shared_ptr<SharedCard> card_;
  StartJob start_job_;
  Bytes others_ = 0;
  Bytes taken_ = 0;  ///< by the jobs' processes, contexts included
};

/// Starts this program as a job's process on the visible card number `device`.
std::unique_ptr<ChildProcess> start_job_process(int device);

}  // namespace vramlab
