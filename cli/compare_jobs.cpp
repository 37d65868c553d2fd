#include "cli/compare_jobs.hpp"

#include <algorithm>
#include <memory>
#include <tuple>

#include <fmt/format.h>

#include "lab/jobs_scenario.hpp"

namespace vramlab {
namespace {

double metric(const JobsResult& result, const char* name) {
  return find_metric(result.metrics, name).value_or(0);
}

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds < 172800) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} d", seconds / 86400);
}

// Most jobs done, then least killed, then least waste, then shortest mean completion.
std::string verdict(const std::vector<JobsResult>& results) {
  if (results.empty()) return "No policy was run.";
  const auto rank = [](const JobsResult& result) {
    return std::tuple{-metric(result, "completed"), metric(result, "oom_kills"),
                      metric(result, "gpu_hours_wasted"), metric(result, "mean_completion_s")};
  };
  const auto best =
      std::min_element(results.begin(), results.end(),
                       [&](const JobsResult& a, const JobsResult& b) { return rank(a) < rank(b); });
  return fmt::format("Best: {}, {:.0f} of {:.0f} jobs completed, {:.0f} OOM kills, mean wait {}.",
                     best->label, metric(*best, "completed"), metric(*best, "jobs"),
                     metric(*best, "oom_kills"), duration(metric(*best, "mean_wait_s")));
}

Table results_table(const std::vector<JobsResult>& results) {
  Table table{{{"policy", Table::Align::left},
               {"done"},
               {"refused"},
               {"timeouts"},
               {"failed"},
               {"OOM kills"},
               {"over-commits"},
               {"GPU h wasted"},
               {"makespan"},
               {"mean wait"},
               {"p50 wait"},
               {"p99 wait"},
               {"mean done in"},
               {"p99 done in"},
               {"memory used"},
               {"fairness"}}};
  for (const JobsResult& result : results) {
    const auto count = [&](const char* name) { return fmt::format("{:.0f}", metric(result, name)); };
    const auto time = [&](const char* name) { return duration(metric(result, name)); };
    table.add_row({result.label, count("completed"), count("refused"), count("timeouts"), count("failed"),
                   count("oom_kills"), count("overcommits"),
                   fmt::format("{:.2f}", metric(result, "gpu_hours_wasted")), time("makespan_s"),
                   time("mean_wait_s"), time("p50_wait_s"), time("p99_wait_s"), time("mean_completion_s"),
                   time("p99_completion_s"),
                   fmt::format("{:.1f} %", 100 * metric(result, "memory_utilisation")),
                   fmt::format("{:.3f}", metric(result, "fairness"))});
  }
  return table;
}

std::string head(const JobsScenario& scenario) {
  std::size_t cards = 0;
  for (const CardNode& node : scenario.setup.cluster.nodes) cards += node.count;
  return fmt::format("{}: {} jobs on {} card{}", scenario.name, scenario.setup.jobs.size(), cards,
                     cards == 1 ? "" : "s");
}

Json compare_jobs(const JobsScenario& scenario, const std::vector<std::string>& labels, Output& output) {
  const auto results = compare_queues(scenario, labels);
  output.line(verdict(results));
  output.line(head(scenario));
  for (const std::string& note : scenario.notes) output.line(note);
  output.line("");
  output.table(results_table(results));
  return jobs_json(scenario, results);
}

}  // namespace

std::function<Json(Output&)> ready_jobs_comparison(const ScenarioText& text,
                                                   const std::vector<std::string>& labels) {
  const auto scenario = std::make_shared<const JobsScenario>(parse_jobs_scenario(text.text, text.file));
  return [=](Output& output) { return compare_jobs(*scenario, labels, output); };
}

}  // namespace vramlab
