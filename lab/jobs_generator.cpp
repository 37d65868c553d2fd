#include "lab/jobs_generator.hpp"

#include <algorithm>

#include "sim/core/random.hpp"

namespace vramlab {
namespace {

// First an octave between the two, then evenly within it: logarithms without floating point.
SimTime any_duration(Random& random, SimTime shortest, SimTime longest) {
  std::int64_t octaves = 0;
  while (shortest.count() << (octaves + 1) <= longest.count()) ++octaves;
  const std::int64_t low = shortest.count() << random.between(0, octaves);
  return SimTime{random.between(low, std::min(2 * low, longest.count()))};
}

const JobSort& any_sort(Random& random, const std::vector<JobSort>& mix) {
  std::int64_t sum = 0;
  for (const JobSort& sort : mix) sum += sort.weight;
  std::int64_t drawn = random.between(0, sum - 1);
  for (const JobSort& sort : mix) {
    if (drawn < sort.weight) return sort;
    drawn -= sort.weight;
  }
  return mix.back();
}

void draw_need(Random& random, const JobSort& sort, JobDemand& demand) {
  const auto mib = static_cast<Bytes>(random.between(static_cast<std::int64_t>(sort.need_low / 1_MiB),
                                                     static_cast<std::int64_t>(sort.need_high / 1_MiB)));
  demand.fixed = mib * 1_MiB;
  if (demand.batch == 1) return;
  demand.fixed /= 5;  // a fifth of the need does not depend on the batch
  demand.per_sample = (mib * 1_MiB - demand.fixed) / static_cast<Bytes>(demand.batch);
}

void run_model(const JobSort& sort, SimTime duration, JobSpec& job) {
  const std::int64_t steps = std::max<std::int64_t>(1, duration / sort.step.duration);
  job.model = sort.model;
  job.phases = {sort.step};
  job.phases.front().steps = steps;
  job.phases.front().duration *= steps;
}

}  // namespace

std::vector<JobSpec> generate_jobs(const std::vector<JobSort>& mix, std::int64_t count, SimTime span,
                                   std::uint64_t seed) {
  Random random{seed};
  std::vector<JobSpec> jobs;
  for (std::int64_t i = 0; i < count; ++i) {
    const JobSort& sort = any_sort(random, mix);
    JobSpec job;
    job.name = sort.name + " " + std::to_string(i);
    job.arrival = SimTime{random.between(0, span.count())};
    job.demand = sort.demand;
    job.busy_milli = sort.busy_milli;
    if (sort.model) {
      run_model(sort, any_duration(random, sort.shortest, sort.longest), job);
    } else {
      draw_need(random, sort, job.demand);
      job.phases = {{.duration = any_duration(random, sort.shortest, sort.longest)}};
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void spread_use(std::vector<JobSpec>& jobs, std::int64_t spread_milli, Bytes card_total, std::uint64_t seed) {
  Random random{seed ^ 0xA5A5A5A5u};  // another stream than that of the jobs themselves
  for (JobSpec& job : jobs) {
    const auto factor = static_cast<Bytes>(1000 + random.between(-spread_milli, spread_milli));
    if (job.model) {
      job.demand.fixed = job.demand.fixed * factor / 1000;
      job.demand.per_sample = job.demand.per_sample * factor / 1000;
      continue;
    }
    if (job.phases.size() != 1 || job.phases.front().fixed_use || job.demand.share_milli > 0) continue;
    JobPhase& phase = job.phases.front();
    phase.fixed_use = std::min(job.demand.fixed * factor / 1000, card_total);
    phase.use_per_sample = job.demand.per_sample * factor / 1000;
  }
}

}  // namespace vramlab
