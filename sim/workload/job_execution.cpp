#include "sim/workload/job_execution.hpp"

#include <optional>
#include <utility>

namespace vramlab {
namespace {

class DeclaredExecution final : public JobExecution {
 public:
  DeclaredExecution(const std::vector<JobSpec>& jobs, ClusterBooks& books, JobClock& clock)
      : jobs_(jobs), books_(books), clock_(clock), held_(jobs.size()) {}

  JobProgress enter(std::uint32_t job, const Admission& admission, std::size_t phase) override {
    const JobPhase& what = jobs_[job].phases[phase];
    const Bytes use = flat_use(what, admission);
    give(job, admission);
    if (!books_.take(*admission.cards, admission.need, use, clock_.now())) return JobProgress::out_of_memory;
    held_[job].bytes = use;
    held_[job].timer = clock_.schedule(what.duration, {JobEvent::Kind::work, job, 0});
    return JobProgress::goes_on;
  }

  JobProgress resume(std::uint32_t /*job*/, const Admission& /*admission*/) override {
    return JobProgress::phase_done;
  }

  void leave(std::uint32_t job, const Admission& admission) override {
    if (held_[job].timer) clock_.cancel(*held_[job].timer);
    give(job, admission);
  }

  [[nodiscard]] Bytes used(std::uint32_t job) const override { return held_[job].bytes; }

 private:
  struct Held {
    Bytes bytes = 0;
    std::optional<EventId> timer;
  };

  void give(std::uint32_t job, const Admission& admission) {
    const Bytes bytes = std::exchange(held_[job].bytes, 0);
    if (bytes > 0) books_.give(*admission.cards, admission.need, bytes, clock_.now());
  }

  const std::vector<JobSpec>& jobs_;
  ClusterBooks& books_;
  JobClock& clock_;
  std::vector<Held> held_;
};

}  // namespace

Bytes flat_use(const JobPhase& phase, const Admission& admission) {
  if (!phase.fixed_use) return admission.need;
  return *phase.fixed_use + phase.use_per_sample * static_cast<Bytes>(admission.split.batch);
}

std::unique_ptr<JobExecution> declared_execution(const std::vector<JobSpec>& jobs, ClusterBooks& books,
                                                 JobClock& clock) {
  return std::make_unique<DeclaredExecution>(jobs, books, clock);
}

}  // namespace vramlab
