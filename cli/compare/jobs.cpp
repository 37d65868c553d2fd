#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

#include <fmt/format.h>

#include "cli/compare/kinds.hpp"
#include "cli/output/traces.hpp"
#include "core/error.hpp"
#include "lab/kinds/jobs/run.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/page/sections.hpp"

namespace vramlab {
namespace {

double metric(const JobsResult& result, const char* name) {
  return find_metric(result.metrics, name).value_or(0);
}

/// One line of a table: a policy's metrics, or their spread.
struct Row {
  std::string label;
  const std::vector<Metric>* metrics = nullptr;
  bool spread = false;
};

// Three digits and a unit: the tables are wide enough as it is.
std::string duration(double seconds) {
  const auto text = [](double value, const char* unit) {
    return value < 99.95 ? fmt::format("{:.1f} {}", value, unit) : fmt::format("{:.0f} {}", value, unit);
  };
  if (std::isnan(seconds)) return "-";
  if (seconds < 120) return text(seconds, "s");
  if (seconds < 7200) return text(seconds / 60, "min");
  if (seconds < 172800) return text(seconds / 3600, "h");
  return text(seconds / 86400, "d");
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

double value(const Row& row, const char* name) { return find_metric(*row.metrics, name).value_or(0); }

Table outcomes_table(const std::vector<Row>& rows) {
  Table table{{{"policy", Table::Align::left},
               {"done"},
               {"refused"},
               {"timeouts"},
               {"failed"},
               {"OOM kills"},
               {"over-commits"},
               {"GPU h wasted"}}};
  const bool fractions = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.spread; });
  for (const Row& row : rows) {
    const auto count = [&](const char* name) {
      return fractions ? fmt::format("{:.1f}", value(row, name)) : fmt::format("{:.0f}", value(row, name));
    };
    table.add_row({row.label, count("completed"), count("refused"), count("timeouts"), count("failed"),
                   count("oom_kills"), count("overcommits"),
                   fmt::format("{:.2f}", value(row, "gpu_hours_wasted"))});
  }
  return table;
}

Table times_table(const std::vector<Row>& rows) {
  Table table{{{"policy", Table::Align::left},
               {"makespan"},
               {"wait"},
               {"p50 wait"},
               {"p99 wait"},
               {"done in"},
               {"p99 done"},
               {"memory"},
               {"fair"}}};
  for (const Row& row : rows) {
    const auto time = [&](const char* name) { return duration(value(row, name)); };
    table.add_row({row.label, time("makespan_s"), time("mean_wait_s"), time("p50_wait_s"), time("p99_wait_s"),
                   time("mean_completion_s"), time("p99_completion_s"),
                   fmt::format("{:.1f} %", 100 * value(row, "memory_utilisation")),
                   fmt::format("{:.3f}", value(row, "fairness"))});
  }
  return table;
}

void print_tables(const std::vector<Row>& rows, Output& output) {
  output.line("");
  output.table(outcomes_table(rows));
  output.line("");
  output.table(times_table(rows));
}

std::string head(const JobsScenario& scenario) {
  std::size_t cards = 0;
  for (const CardNode& node : scenario.setup.cluster.nodes) cards += node.count;
  return fmt::format("{}: {} jobs on {} card{}{}", scenario.name, scenario.setup.jobs.size(), cards,
                     cards == 1 ? "" : "s", scenario.setup.steps ? ", step by step" : "");
}

void print_head(const JobsScenario& scenario, const std::string& more, Output& output) {
  output.line(head(scenario) + more);
  for (const std::string& note : scenario.notes) output.line(note);
}

Json compare_over_seeds(const std::vector<JobsScenario>& scenarios, const ComparisonQuestion& question,
                        Output& output) {
  const auto results = compare_seeds(scenarios, question.labels);
  std::vector<JobsResult> means;
  std::vector<Row> rows;
  for (const SeededResult& result : results) {
    means.push_back(result.mean);
    rows.push_back({result.mean.label, &result.mean.metrics});
    rows.push_back({"  ±", &result.spread, true});
  }
  output.line(verdict(means));
  print_head(scenarios.front(),
             fmt::format(", seeds {} to {}: means and ± standard deviations", scenarios.front().seed,
                         scenarios.back().seed),
             output);
  print_tables(rows, output);
  return seeds_json(scenarios, results);
}

Json compare_once(const JobsScenario& scenario, const ComparisonQuestion& question, Output& output) {
  const auto results = compare_queues(scenario, question.labels);
  output.line(verdict(results));
  print_head(scenario, "", output);
  std::vector<Row> rows;
  for (const JobsResult& result : results) rows.push_back({result.label, &result.metrics});
  print_tables(rows, output);
  for (const JobsResult& result : results) {
    if (result.run.ended_early.empty()) continue;
    output.line(fmt::format("{} ended early: {}.", result.label, result.run.ended_early));
  }
  std::map<std::string, std::vector<std::string>> traces;
  if (!question.trace_dir.empty()) traces = write_queue_traces(scenario, results, question.trace_dir);
  for (const auto& [label, files] : traces) {
    for (const std::string& file : files) output.wrote(file);
  }
  if (!question.picture.empty()) {
    draw_queue(scenario, results, head(scenario), question.picture);
    output.wrote(question.picture);
  }
  if (output.report().wanted()) {
    output.report().add(jobs_section(scenario, results, {verdict(results), head(scenario)}));
  }
  return jobs_json(scenario, results, traces);
}

}  // namespace

ReadyComparison ready_jobs_comparison(const ScenarioDocument& document, const ComparisonQuestion& question) {
  const bool shows_run = !question.picture.empty() || !question.trace_dir.empty() || question.report;
  if (question.seeds > 1 && shows_run) {
    throw InputError("", "--picture, --trace-dir and --report show one run; leave --seeds out.");
  }
  std::vector<JobsScenario> scenarios;
  for (std::int64_t i = 0; i < question.seeds; ++i) {
    scenarios.push_back(read_jobs(at_seed(document, static_cast<std::uint64_t>(i))));
    scenarios.back().setup.keep_moments = shows_run;
  }
  if (question.seeds > 1) {
    return [=](Output& output) { return compare_over_seeds(scenarios, question, output); };
  }
  return [=](Output& output) { return compare_once(scenarios.front(), question, output); };
}

}  // namespace vramlab
