#include "sim/runs/job.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace vramlab {

JobDemand demand_in_phase(JobDemand demand, const JobPhase& phase) {
  if (!phase.need) return demand;
  demand.fixed = *phase.need;
  demand.per_sample = 0;
  demand.share_milli = 0;
  return demand;
}

SimTime expected_span(const JobSpec& job, std::size_t phase, bool one_phase) {
  if (job.expected) return *job.expected;
  SimTime span{0};
  const std::size_t end = one_phase ? phase + 1 : job.phases.size();
  for (std::size_t i = phase; i < end; ++i) span += job.phases[i].duration;
  return span;
}

void require_sound(const JobSpec& job, bool steps) {
  const auto every_phase = [&](const auto& good) {
    return std::all_of(job.phases.begin(), job.phases.end(), good);
  };
  if (job.phases.empty() || !every_phase([](const JobPhase& p) { return p.duration > SimTime{0}; })) {
    throw InputError("", "the job \"" + job.name + "\" has no phase, or one that takes no time.");
  }
  if (!steps || !job.model) return;
  const std::size_t parameters = job.model->workload->parameters().size();
  if (!every_phase([&](const JobPhase& p) { return p.steps > 0 && p.point.size() == parameters; })) {
    throw InputError("", "the job \"" + job.name + "\" has a phase without steps of its model.");
  }
}

}  // namespace vramlab
