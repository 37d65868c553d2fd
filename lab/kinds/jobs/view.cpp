#include "lab/kinds/jobs/view.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/scenario/schema.hpp"

namespace vramlab {
namespace {

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
  if (std::isnan(seconds)) return kNoFigure;
  if (seconds < 120) return text(seconds, "s");
  if (seconds < 7200) return text(seconds / 60, "min");
  if (seconds < 172800) return text(seconds / 3600, "h");
  return text(seconds / 86400, "d");
}

// Most jobs done, then least killed, then least waste, then shortest mean completion.
std::string verdict_on(const std::vector<JobsResult>& results) {
  if (results.empty()) return "No policy was run.";
  const auto rank = [](const JobsResult& result) {
    const Figures figures{result.metrics};
    const double mean = figures["mean_completion_s"];  // none where no job completed
    return std::tuple{-figures["completed"], figures["oom_kills"], figures["gpu_hours_wasted"],
                      std::isnan(mean) ? 0 : mean};
  };
  const auto best =
      std::min_element(results.begin(), results.end(),
                       [&](const JobsResult& a, const JobsResult& b) { return rank(a) < rank(b); });
  const Figures figures{best->metrics};
  return fmt::format("Best: {}, {} of {} jobs completed, {} OOM kills, mean wait {}.", best->label,
                     figures.count("completed"), figures.count("jobs"), figures.count("oom_kills"),
                     duration(figures["mean_wait_s"]));
}

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
    const Figures figures{*row.metrics};
    const auto count = [&](const char* name) { return figures.fixed(name, fractions ? 1 : 0); };
    table.add_row({row.label, count("completed"), count("refused"), count("timeouts"), count("failed"),
                   count("oom_kills"), count("overcommits"), figures.fixed("gpu_hours_wasted", 2)});
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
    const Figures figures{*row.metrics};
    const auto time = [&](const char* name) { return duration(figures[name]); };
    table.add_row({row.label, time("makespan_s"), time("mean_wait_s"), time("p50_wait_s"), time("p99_wait_s"),
                   time("mean_completion_s"), time("p99_completion_s"), figures.percent("memory_utilisation"),
                   figures.fixed("fairness", 3)});
  }
  return table;
}

std::string head_of(const JobsScenario& scenario) {
  std::size_t cards = 0;
  for (const CardNode& node : scenario.setup.cluster.nodes) cards += node.count;
  return fmt::format("{}: {} jobs on {} card{}{}", scenario.name, scenario.setup.jobs.size(), cards,
                     cards == 1 ? "" : "s", scenario.setup.steps ? ", step by step" : "");
}

/// Admitters side by side, on one draw of the jobs or on several: then means, and how far they lie apart.
class JobsExperiment : public PolicyExperiment<JobsScenario, std::vector<JobsResult>> {
 public:
  JobsExperiment(std::vector<JobsScenario> seeds, Question question)
      : PolicyExperiment(seeds.front(), std::move(question)), seeds_(std::move(seeds)) {}

  void run(const std::vector<std::string>& labels) override {
    if (!is_seeded()) {
      results_ = compare_queues(scenario_, labels);
      return;
    }
    spreads_ = compare_seeds(seeds_, labels);
    for (const SeededResult& result : spreads_) results_.push_back(result.mean);
  }

  [[nodiscard]] std::string verdict() const override { return verdict_on(results_); }
  [[nodiscard]] std::vector<std::string> head() const override {
    std::vector<std::string> lines{head_of(scenario_)};
    if (is_seeded()) {
      lines.front() += fmt::format(", seeds {} to {}: means and ± standard deviations", seeds_.front().seed,
                                   seeds_.back().seed);
    }
    lines.insert(lines.end(), scenario_.notes.begin(), scenario_.notes.end());
    return lines;
  }
  [[nodiscard]] std::vector<Table> tables() const override {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      rows.push_back({results_[i].label, &results_[i].metrics});
      if (is_seeded()) rows.push_back({"  ±", &spreads_[i].spread, true});
    }
    return {outcomes_table(rows), times_table(rows)};
  }

  std::vector<std::string> write_files() override {
    std::vector<std::string> written;
    if (!question_.trace_dir.empty()) traces_ = write_queue_traces(scenario_, results_, question_.trace_dir);
    for (const auto& [label, files] : traces_) written.insert(written.end(), files.begin(), files.end());
    if (!question_.picture.empty()) {
      draw_queue(scenario_, results_, head_of(scenario_), question_.picture);
      written.push_back(question_.picture);
    }
    return written;
  }
  [[nodiscard]] Json json() const override {
    return is_seeded() ? seeds_json(seeds_, spreads_) : jobs_json(scenario_, results_, traces_);
  }
  [[nodiscard]] std::vector<Json> sections() const override {
    return {jobs_section(scenario_, results_, {verdict(), head_of(scenario_)})};
  }
  [[nodiscard]] std::vector<std::string> around(const Expectation& expectation) const override {
    return jobs_to_look_at(scenario_.setup, find(expectation.policy)->run);
  }

 private:
  [[nodiscard]] bool is_seeded() const { return seeds_.size() > 1; }

  std::vector<JobsScenario> seeds_;                         ///< the first is the scenario
  std::vector<SeededResult> spreads_;                       ///< of several seeds
  std::map<std::string, std::vector<std::string>> traces_;  ///< written, by label
};

std::unique_ptr<Experiment> read_questioned(const ScenarioDocument& document, const Question& question) {
  const bool shows_run = !question.picture.empty() || !question.trace_dir.empty() || question.report;
  if (question.seeds > 1 && shows_run) {
    throw InputError("", "--picture, --trace-dir and --report show one run; leave --seeds out.");
  }
  std::vector<JobsScenario> seeds;
  for (std::int64_t i = 0; i < question.seeds; ++i) {
    seeds.push_back(read_jobs(at_seed(document, static_cast<std::uint64_t>(i))));
    seeds.back().setup.keep_moments = shows_run;
  }
  if (question.seeds > 1 && !seeds.front().draws) {
    throw InputError(
        document.file,
        "nothing of it is drawn (\"generate\", \"estimate_error\"): every seed gives the same run.");
  }
  return std::make_unique<JobsExperiment>(std::move(seeds), question);
}

}  // namespace

Json jobs_json(const JobsScenario& scenario, const std::vector<JobsResult>& results,
               const std::map<std::string, std::vector<std::string>>& trace_files) {
  Json json;
  json["scenario"] = scenario.name;
  json["seed"] = scenario.seed;
  json["fidelity"] = scenario.setup.steps ? "steps" : "declared";
  json["notes"] = scenario.notes;
  json["policies"] = Json::array();
  for (const JobsResult& result : results) {
    Json entry;
    entry["policy"] = result.policy;
    entry["profile"] = result.profile;
    entry["label"] = result.label;
    entry["metrics"] = figures_json(result.metrics);
    if (!result.run.ended_early.empty()) entry["ended_early"] = result.run.ended_early;
    const auto files = trace_files.find(result.label);
    entry["trace_files"] = files == trace_files.end() ? Json::array() : Json(files->second);
    json["policies"].push_back(std::move(entry));
  }
  return json;
}

Json seeds_json(const std::vector<JobsScenario>& scenarios, const std::vector<SeededResult>& results) {
  std::vector<JobsResult> means;
  for (const SeededResult& result : results) means.push_back(result.mean);
  Json json = jobs_json(scenarios.front(), means);
  json["seeds"] = scenarios.size();
  for (std::size_t i = 0; i < results.size(); ++i)
    json["policies"][i]["spread"] = figures_json(results[i].spread);
  return json;
}

Kind jobs_kind() {
  return {.name = "jobs",
          .table = jobs_table,
          .schema = [](const PolicySet& known) { return kind_schema(jobs_table(), known.admitters); },
          .metrics = jobs_metric_table,
          .read = read_questioned,
          .sweep_metric = "mean_completion_s",
          .has_picture = true,
          .has_traces = true,
          .is_drawn = true};
}

}  // namespace vramlab
