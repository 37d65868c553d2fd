#include "lab/experiment.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

std::vector<JobsResult> compare_queues(const JobsScenario& scenario, const std::vector<std::string>& labels) {
  return run_policies(scenario, labels, [&](const PolicyEntry& entry) {
    const auto policy = scenario.known->admitters.make(entry.choice);
    JobsResult result{named_after(entry), run_job_queue(scenario.setup, *policy)};
    result.metrics = jobs_metrics(scenario.setup, result.run);
    return result;
  });
}

}  // namespace vramlab
