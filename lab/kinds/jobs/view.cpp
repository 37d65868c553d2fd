#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/page/drawing.hpp"
#include "lab/scenario/schema.hpp"
#include "recordings/runs/run_trace.hpp"
#include "report/output_file.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace {

// Of several seeds only figures are kept.
std::string lost_jobs(const JobQueueSetup& setup, const JobsResult& result) {
  if (has_finished(result.metrics)) return "";
  const Figures figures{result.metrics};
  if (result.run.jobs.empty()) {
    return fmt::format("with {} refused, {} timed out, {} killed on the mean", figures.fixed("refused", 1),
                       figures.fixed("timeouts", 1), figures.fixed("failed", 1));
  }
  return losses_text(setup, result.run);
}

Standing standing_of(const JobQueueSetup& setup, const JobsResult& result) {
  const Figures figures{result.metrics};
  return {.label = result.label,
          .lost = lost_jobs(setup, result),
          .rank = {figures["jobs"] - figures["completed"], figures["oom_kills"], figures["gpu_hours_wasted"],
                   is_steered(setup) ? figures["failed_steps"] : 0, figures["mean_completion_s"]},
          .remark = fmt::format(", {} of {} jobs completed, {} OOM kills, mean wait {}",
                                figures.count("completed"), figures.count("jobs"), figures.count("oom_kills"),
                                duration(figures["mean_wait_s"]))};
}

// Means of several draws have fractions. `ended`: labels of those whose policy could not go on.
Table outcomes_table(const std::vector<LabelledFigures>& rows, bool fractions,
                     const std::vector<std::string>& ended) {
  auto columns = figure_columns(
      "policy", {"done", "refused", "timeouts", "failed", "OOM kills", "over-commits", "GPU h wasted"});
  if (!ended.empty()) columns.push_back(left("end"));
  Table table{std::move(columns)};
  for (const LabelledFigures& row : rows) {
    const Figures figures{row.metrics};
    const auto count = [&](const char* name) { return figures.fixed(name, fractions ? 1 : 0); };
    std::vector<std::string> cells{
        row.label,       count("completed"), count("refused"),     count("timeouts"),
        count("failed"), count("oom_kills"), count("overcommits"), figures.fixed("gpu_hours_wasted", 2)};
    const bool early = std::ranges::find(ended, row.label) != ended.end();
    if (!ended.empty()) cells.push_back(early ? "early" : kNoFigure);
    table.add_row(std::move(cells));
  }
  return table;
}

Table times_table(const std::vector<LabelledFigures>& rows) {
  Table table{figure_columns(
      "policy", {"makespan", "wait", "p50 wait", "p99 wait", "done in", "p99 done", "memory", "fair"})};
  for (const LabelledFigures& row : rows) {
    const Figures figures{row.metrics};
    const auto time = [&](const char* name) { return duration(figures[name]); };
    table.add_row({row.label, time("makespan_s"), time("mean_wait_s"), time("p50_wait_s"), time("p99_wait_s"),
                   time("mean_completion_s"), time("p99_completion_s"), figures.percent("memory_utilisation"),
                   figures.fixed("fairness", 3)});
  }
  return table;
}

Table moves_table(const std::vector<LabelledFigures>& rows, QueueObjective objective) {
  auto columns = figure_columns("policy", {"overruns", "changes", "failed steps", "samples", "samples / s"});
  const bool pixels = objective == QueueObjective::pixels_per_s;
  if (pixels) columns.push_back({"Mpixel / s"});
  if (objective != QueueObjective::none) columns.push_back({"regret"});
  Table table{std::move(columns)};
  for (const LabelledFigures& row : rows) {
    const Figures figures{row.metrics};
    std::vector<std::string> cells{row.label,
                                   figures.fixed("overruns", 0),
                                   figures.fixed("tuner_changes", 0),
                                   figures.fixed("failed_steps", 0),
                                   figures.fixed("samples", 0),
                                   figures.fixed("samples_per_s", 1)};
    if (pixels) cells.push_back(fixed_text(figures["pixels_per_s"] / 1e6, 3));
    if (objective != QueueObjective::none) cells.push_back(figures.percent("regret"));
    table.add_row(std::move(cells));
  }
  return table;
}

constexpr std::size_t kMostStays = 4000;  // of one policy; about a bar a pixel
constexpr std::size_t kMostFates = 200;   // of one policy; those that did not end well first
constexpr std::size_t kMostCards = 64;    // of one policy; more than a screen

std::vector<std::string> card_names(const ClusterSetup& cluster) {
  std::vector<std::string> names;
  for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
    for (std::uint32_t i = 0; i < cluster.nodes[node].count && names.size() < kMostCards; ++i) {
      names.push_back(cluster.nodes.size() > 1 ? fmt::format("node {}, card {}", node, i)
                                               : fmt::format("card {}", i));
    }
  }
  return names;
}

Bytes card_total(const JobQueueSetup& setup, CardId card) {
  for (const CardNode& node : setup.cluster.nodes) {
    if (card >= node.first && card < node.first + node.count) return setup.cluster.pools[node.pool].total;
  }
  throw InternalError("a card of no node");
}

/// One job on one card for a while: a bar of the chart.
struct Bar {
  const JobStay* stay = nullptr;
  CardId card = 0;
};

// What is left out is the shortest; a stay that ran out of memory is always there.
std::vector<Bar> drawn_bars(const JobQueueRun& run, std::size_t cards, std::size_t& omitted) {
  std::vector<Bar> bars;
  std::size_t all = 0;
  for (const JobStay& stay : run.stays) {
    for (const CardId card : stay.cards) {
      ++all;
      if (card < cards) bars.push_back({&stay, card});
    }
  }
  if (bars.size() > kMostStays) {
    const auto rank = [](const Bar& bar) {  // all stays lie in one list: the place in it decides ties
      return std::tuple{!bar.stay->ran_out, bar.stay->from - bar.stay->to, bar.stay, bar.card};
    };
    std::ranges::sort(bars, {}, rank);
    const auto ran_out =
        std::partition_point(bars.begin(), bars.end(), [](const Bar& bar) { return bar.stay->ran_out; });
    bars.resize(std::max(kMostStays, static_cast<std::size_t>(ran_out - bars.begin())));
    std::ranges::sort(bars, {}, [](const Bar& bar) { return std::tuple{bar.stay, bar.card}; });
  }
  omitted = all - bars.size();
  return bars;
}

/// Names of the jobs that are drawn, each once.
class JobNames {
 public:
  explicit JobNames(const std::vector<JobSpec>& jobs) : jobs_(jobs) {}

  std::size_t place(std::uint32_t job) {
    const auto [found, fresh] = places_.try_emplace(job, places_.size());
    if (fresh) names_.push_back(jobs_[job].name);
    return found->second;
  }
  [[nodiscard]] const Json& names() const { return names_; }

 private:
  const std::vector<JobSpec>& jobs_;
  std::map<std::uint32_t, std::size_t> places_;
  Json names_ = Json::array();
};

Json waiting_json(const std::vector<QueueMoment>& moments) {
  Json list = Json::array();
  const auto curve =
      thinned_curve(moments.size(), curve_stride(moments.size(), kMostPoints), [&](std::size_t i) {
        return CurvePoint{moments[i].time.count(), moments[i].pending};
      });
  for (const CurvePoint& point : curve) list.push_back({to_seconds(SimTime{point.x}), point.value});
  return list;
}

constexpr CardId kMostHeld = 8;  // cards of which the page shows what each job held

// For each card its total, boxes [job, from, to, low, high] and when memory was short; then the parameters'
// curves.
void put_moves(const JobQueueSetup& setup, const JobQueueRun& run, std::size_t cards, JobNames& names,
               Json& json) {
  json["held"] = Json::array();
  for (CardId card = 0; card < std::min<std::size_t>(cards, kMostHeld); ++card) {
    Json boxes = Json::array();
    for (const QueueBar& bar : held_bars(run, card)) {
      boxes.push_back({names.place(static_cast<std::uint32_t>(bar.job)), to_seconds(bar.from),
                       to_seconds(bar.to), bar.low.value(), bar.low.value() + bar.memory});
    }
    Json failures = Json::array();
    for (const SimTime failure : failures_on(run, card)) failures.push_back(to_seconds(failure));
    json["held"].push_back(
        {{"total", card_total(setup, card)}, {"boxes", std::move(boxes)}, {"failures", std::move(failures)}});
  }
  json["curves"] = Json::array();
  for (const QueueCurve& curve : parameter_curves(setup, run)) {
    Json values = Json::array();
    for (const auto& [time, value] : curve.values) {
      values.push_back({to_seconds(time), std::isnan(value) ? Json() : Json(value)});
    }
    json["curves"].push_back({{"name", curve.name},
                              {"job", names.place(static_cast<std::uint32_t>(curve.job))},
                              {"parameter", curve.parameter},
                              {"number", curve.number},
                              {"values", std::move(values)}});
  }
}

Json policy_json(const JobQueueSetup& setup, const JobsResult& result, const std::vector<std::string>& cards,
                 JobNames& names) {
  Json json;
  json["label"] = result.label;
  if (!result.run.ended_early.empty()) json["ended_early"] = result.run.ended_early;
  json["metrics"] = figures_json(result.metrics);
  json["cards"] = cards;
  std::size_t omitted = 0;
  json["stays"] = Json::array();
  for (const Bar& bar : drawn_bars(result.run, cards.size(), omitted)) {
    json["stays"].push_back({names.place(bar.stay->job), bar.card, to_seconds(bar.stay->from),
                             to_seconds(bar.stay->to), bar.stay->need, bar.stay->most_used,
                             bar.stay->ran_out});
  }
  json["omitted"] = omitted;
  json["waiting"] = waiting_json(result.run.monitored);
  json["jobs"] = fates_json(setup, result.run, kMostFates);
  if (is_steered(setup)) put_moves(setup, result.run, cards.size(), names, json);
  return json;
}

constexpr std::size_t kMostDrawn = 16;  // cards of one policy in a picture

// A box a stay, as high as its highest use.
std::vector<QueueBar> stay_bars(const JobQueueRun& run, CardId card) {
  std::vector<QueueBar> bars;
  for (const JobStay& stay : run.stays) {
    if (std::find(stay.cards.begin(), stay.cards.end(), card) == stay.cards.end()) continue;
    // One that ran out at once used nothing; what it wanted is shown.
    const Bytes memory = stay.ran_out ? std::max(stay.most_used, stay.need) : stay.most_used;
    bars.push_back({stay.from, stay.to, memory, stay.job, stay.ran_out});
  }
  return bars;
}

// Where tuners move what a job holds, each change of it is drawn.
QueuePanel panel_of(const JobQueueSetup& setup, const JobQueueRun& run, CardId card) {
  QueuePanel panel;
  if (is_steered(setup)) {
    panel.bars = held_bars(run, card);
    panel.failures = failures_on(run, card);
  } else {
    panel.bars = stay_bars(run, card);
  }
  for (const CardMoment& moment : run.moments) {
    if (moment.card != card) continue;
    panel.levels.push_back({moment.time, moment.promised, moment.used + moment.foreign});
  }
  panel.total = card_total(setup, card);
  return panel;
}

// Writes the time line of each policy into `folder` (made if missing), named by label: LABEL.jsonl and
// LABEL.csv (the cards), LABEL.jobs.csv (stays of jobs), LABEL.fates.csv (what became of each job),
// LABEL.monitor.csv (the queue), LABEL.moves.csv (what tuners and composers did), LABEL.perfetto.json.
// The runs must have kept their moments. Returns label → files.
std::map<std::string, std::vector<std::string>> write_queue_traces(const JobsScenario& scenario,
                                                                   const std::vector<JobsResult>& results,
                                                                   const std::string& folder) {
  const auto bases = file_bases(all_labels(results), folder);
  std::map<std::string, std::vector<std::string>> files;
  for (const JobsResult& result : results) {
    const auto write = [&](const char* ending, const auto& content) {
      files[result.label].push_back(bases.at(result.label) + ending);
      OutputFile output{files[result.label].back()};
      content([&](std::string_view piece) { output.write(piece); });
      output.commit();
    };
    const JobQueueRun& run = result.run;
    const auto& jobs = scenario.setup.jobs;
    write(".jsonl", [&](const TextSink& sink) { write_cards_jsonl(run, sink); });
    write(".csv", [&](const TextSink& sink) { write_cards_csv(run, sink); });
    write(".jobs.csv", [&](const TextSink& sink) { write_stays_csv(jobs, run, sink); });
    write(".fates.csv", [&](const TextSink& sink) { sink(fates_csv(scenario.setup, run)); });
    write(".monitor.csv", [&](const TextSink& sink) { write_monitor_csv(run, sink); });
    if (is_steered(scenario.setup)) {
      write(".moves.csv", [&](const TextSink& sink) { sink(courses_csv(scenario.setup, run)); });
    }
    write(".perfetto.json", [&](const TextSink& sink) {
      write_queue_perfetto(scenario.name + ": " + result.label, jobs, run, sink);
    });
  }
  return files;
}

// Draws every card of every policy, the first 16 where there are more; says so through the titles.
void draw_queue(const JobsScenario& scenario, const std::vector<JobsResult>& results,
                const std::string& title, const std::string& file) {
  const std::size_t cards = scenario.cards();
  std::vector<QueuePanel> panels;
  for (const JobsResult& result : results) {
    for (CardId card = 0; card < std::min(cards, kMostDrawn); ++card) {
      panels.push_back(panel_of(scenario.setup, result.run, card));
      panels.back().title = cards == 1 ? result.label : fmt::format("{}, card {}", result.label, card);
      if (card + 1 == kMostDrawn && cards > kMostDrawn) {
        panels.back().title += fmt::format(" ({} more are not drawn)", cards - kMostDrawn);
      }
    }
    panels.back().curves = parameter_curves(scenario.setup, result.run);
  }
  draw_queue_picture(title, panels, file);
}

// Who was admitted, in that order, with what promise; what became of each job; and what the policies of jobs
// did.
std::vector<std::string> queue_decisions(const JobQueueSetup& setup, const JobQueueRun& run) {
  std::vector<std::string> lines;
  for (const JobStay& stay : run.stays) {
    lines.push_back(fmt::format("{} starts with {} B on {} card{}{}", setup.jobs[stay.job].name, stay.need,
                                stay.cards.size(), stay.cards.size() == 1 ? "" : "s",
                                stay.ran_out ? " and runs out of memory" : ""));
  }
  for (const Json& fate : fates_json(setup, run)) {
    lines.push_back(fmt::format("{} is {} at batch {}, after {} kills", fate["name"].get<std::string>(),
                                fate["state"].get<std::string>(), fate["batch"].dump(),
                                fate["kills"].dump()));
  }
  std::ranges::move(course_lines(setup, run), std::back_inserter(lines));
  return lines;
}

/// Admitters side by side, on one draw of the jobs or on several: then means, and how far they lie apart.
class JobsExperiment : public ScenarioExperiment<JobsScenario, std::vector<JobsResult>> {
 public:
  using ScenarioExperiment::ScenarioExperiment;

  void run(const std::vector<std::string>& labels) override {
    results_ = compare_queues(scenario_, labels);
    if (!has_oracle_ || question_.decisions) return;
    auto oracle = find_queue_oracle(scenario_, question_.threads);
    if (!oracle) return;
    results_.push_back(*std::move(oracle));
    add_regrets(scenario_, results_.back(), results_);
  }
  bool take_seeds(const SeededFigures& figures) override {
    results_.clear();
    for (std::size_t i = 0; i < figures.means.size(); ++i) {
      const auto& policies = scenario_.policies;
      const auto entry = std::ranges::find(policies, figures.means[i].label, &PolicyEntry::label);
      results_.push_back({named_after(*entry), {}, figures.spreads[i].metrics});
      results_.back().metrics = figures.means[i].metrics;
    }
    return true;
  }
  void leave_out_oracle() override { has_oracle_ = false; }

  [[nodiscard]] std::vector<Standing> standings() const override {
    std::vector<Standing> standings;
    for (const JobsResult& result : results_) {
      if (!result.oracle) standings.push_back(standing_of(scenario_.setup, result));
    }
    return standings;
  }
  [[nodiscard]] BestRule best_rule() const override {
    const std::string failed = is_steered(scenario_.setup) ? "fewest failed steps, then " : "";
    return {"Best of those that completed every job: fewest OOM kills, then fewest GPU hours wasted, then " +
                failed + "shortest mean completion.",
            "No policy completed every job"};
  }
  [[nodiscard]] std::string head_line() const override {
    const std::size_t cards = scenario_.cards();
    return fmt::format("{}: {} jobs on {} card{}{}", scenario_.name, scenario_.setup.jobs.size(), cards,
                       cards == 1 ? "" : "s", scenario_.setup.steps ? ", step by step" : "") +
           (scenario_.context_assumed ? " (contexts assumed)" : "") +
           (is_seeded() ? fmt::format(", seeds {} to {}: means and ± standard deviations", scenario_.seed,
                                      scenario_.seed + static_cast<std::uint64_t>(question_.seeds) - 1)
                        : "");
  }
  [[nodiscard]] std::vector<Table> tables() const override {
    std::vector<LabelledFigures> rows;
    std::vector<std::string> ended;
    for (const JobsResult& result : results_) {
      if (!result.run.ended_early.empty()) ended.push_back(result.label);
      rows.push_back(result);
      if (is_seeded()) rows.push_back({"  ±", result.spread});
    }
    std::vector<Table> tables{outcomes_table(rows, is_seeded(), ended), times_table(rows)};
    if (is_steered(scenario_.setup)) tables.push_back(moves_table(rows, scenario_.objective));
    if (auto tuners = steered_table(scenario_.setup, results_)) tables.push_back(*std::move(tuners));
    if (question_.all_rows && !is_seeded()) {
      tables.push_back(full_fates_table(scenario_.setup, results_));
    } else if (auto fates = fates_table(scenario_.setup, results_)) {
      tables.push_back(*std::move(fates));
    }
    return tables;
  }

  [[nodiscard]] std::vector<std::string> endings() const override {
    std::vector<std::string> lines = ScenarioExperiment::endings();
    for (const JobsResult& result : results_) {
      if (result.oracle) lines.push_back(oracle_line(*result.oracle));
    }
    return lines;
  }

  std::vector<std::string> write_files() override {
    std::vector<std::string> written;
    if (!question_.trace_dir.empty()) traces_ = write_queue_traces(scenario_, results_, question_.trace_dir);
    for (const auto& [label, files] : traces_) written.insert(written.end(), files.begin(), files.end());
    if (!question_.picture.empty()) {
      draw_queue(scenario_, results_, head_line(), question_.picture);
      written.push_back(question_.picture);
    }
    return written;
  }
  [[nodiscard]] Json json() const override {
    Json json = jobs_json(scenario_, results_, traces_);
    if (is_seeded()) json["seeds"] = question_.seeds;
    return judged(std::move(json));
  }
  [[nodiscard]] std::vector<Json> sections() const override {
    Json section = starred(jobs_section(scenario_, results_, {verdict(), head_line()}));
    for (const JobsResult& result : results_) {
      if (result.oracle) section["notes"].push_back(oracle_line(*result.oracle));
    }
    return {std::move(section)};
  }
  [[nodiscard]] std::vector<Decisions> decisions() const override {
    std::vector<Decisions> all;
    for (const JobsResult& result : results_) {
      all.push_back({result.label, queue_decisions(scenario_.setup, result.run)});
    }
    return all;
  }
  [[nodiscard]] std::vector<std::string> around(const Expectation& expectation) const override {
    const JobsResult* result = find(expectation.policy);
    if (result == nullptr) return {};
    return jobs_about(expectation.name, scenario_.setup, result->run);
  }

  [[nodiscard]] std::vector<Unmet> unmet() const override {
    std::vector<Unmet> unmet;
    const JobQueueSetup& setup = scenario_.setup;
    SimTime end{-1};
    std::vector<bool> crashed(setup.jobs.size(), false);
    for (const JobsResult& result : results_) {
      if (!result.run.ended_early.empty()) return {};
      end = std::max(end, result.run.end);
      for (std::size_t i = 0; i < result.run.jobs.size(); ++i) {
        if (result.run.jobs[i].outcome == JobOutcome::crashed) crashed[i] = true;
      }
    }
    if (end < SimTime{0} || is_seeded()) return {};
    for (std::size_t i = 0; i < setup.strangers.size(); ++i) {
      if (setup.strangers[i].from <= end) continue;
      unmet.push_back(
          {fmt::format("/strangers/{}", i),
           fmt::format("it comes at {} s, and the last job leaves at {} s",
                       shortest_text(to_seconds(setup.strangers[i].from)), shortest_text(to_seconds(end)))});
    }
    for (std::size_t i = 0; i < setup.jobs.size() && unmet.size() < kMostUnmet; ++i) {
      const JobSpec& job = setup.jobs[i];
      if (job.crash_after == SimTime::max() || crashed[i]) continue;
      unmet.push_back({"/jobs: " + job.name, fmt::format("its owner does not die: it never ran for {} s",
                                                         shortest_text(to_seconds(job.crash_after)))});
    }
    return unmet;
  }

 private:
  static constexpr std::size_t kMostUnmet = 20;

  [[nodiscard]] bool is_seeded() const { return question_.seeds > 1; }

  bool has_oracle_ = true;
  std::map<std::string, std::vector<std::string>> traces_;  ///< written, by label
};

// Where the question asks for a real card.
void perform_on_card(const Question& question, JobsScenario& scenario) {
  if (!question.make_job_card) return;
  require_cards(question, scenario, scenario.cards(), "/cards");
  if (!scenario.setup.steps) {
    throw InputError(scenario.file + ": /fidelity",
                     "\"declared\" has no steps that a real card could perform. Write \"steps\".");
  }
  scenario.setup.steps->make_card = question.make_job_card;
  scenario.notes.emplace_back(
      "Every job is a process of its own on the card; times are the scenario's, not the card's.");
}

std::unique_ptr<Experiment> read_questioned(const ScenarioDocument& document, const Question& question) {
  const bool shows_run = !question.picture.empty() || !question.trace_dir.empty() || question.report;
  JobsScenario scenario = read_jobs(document);
  scenario.setup.keep_moments = shows_run || question.decisions;
  perform_on_card(question, scenario);
  if (question.seeds > 1 && !scenario.draws) {
    throw InputError(
        document.file,
        "nothing of it is drawn (\"generate\", \"estimate_error\"): every seed gives the same run.");
  }
  return std::make_unique<JobsExperiment>(std::move(scenario), question);
}

}  // namespace

Json jobs_json(const JobsScenario& scenario, const std::vector<JobsResult>& results,
               const std::map<std::string, std::vector<std::string>>& trace_files) {
  Json json;
  json["scenario"] = scenario.name;
  json["seed"] = scenario.seed;
  json["context_assumed"] = scenario.context_assumed;
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
    if (result.oracle) entry["oracle"] = oracle_json(*result.oracle);
    if (!result.run.jobs.empty()) entry["jobs"] = fates_json(scenario.setup, result.run);
    if (is_steered(scenario.setup) && !result.run.jobs.empty()) {
      entry["moves"] = courses_json(scenario.setup, result.run);
    }
    const auto files = trace_files.find(result.label);
    entry["trace_files"] = files == trace_files.end() ? Json::array() : Json(files->second);
    if (!result.spread.empty()) entry["spread"] = figures_json(result.spread);
    json["policies"].push_back(std::move(entry));
  }
  return json;
}

Json jobs_section(const JobsScenario& scenario, const std::vector<JobsResult>& results,
                  const SectionHead& head) {
  Json json = begun_section("jobs", scenario.name, head);
  json["description"] = scenario.description;
  json["notes"] = scenario.notes;
  json["metrics"] = metrics_json(jobs_metric_table());
  const auto cards = card_names(scenario.setup.cluster);
  JobNames names{scenario.setup.jobs};
  SimTime begin = SimTime::max();
  SimTime end{0};
  json["policies"] = Json::array();
  for (const JobsResult& result : results) {
    json["policies"].push_back(policy_json(scenario.setup, result, cards, names));
    begin = std::min(begin, result.run.begin);
    end = std::max(end, result.run.end);
  }
  json["jobs"] = names.names();
  json["span"] = {results.empty() ? 0.0 : to_seconds(begin), to_seconds(end)};
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
          .has_steps = true};
}

}  // namespace vramlab
