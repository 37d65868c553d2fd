#include "lab/kinds/training/view.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/page/sections.hpp"
#include "lab/scenario/faults.hpp"
#include "lab/scenario/schema.hpp"
#include "recordings/runs/run_trace.hpp"
#include "report/output_file.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace {

// Why it did more than the best fixed choice, which stays within bounds and band all the time.
std::string above_oracle(const TrainingScenario& scenario, const PolicyResult& result) {
  const CardPeak& peak = result.run.peak_allocated;
  if (!within_target(scenario.target, peak.bytes, peak.total))
    return "it goes above target plus margin, where the oracle may not go";
  if (Figures{result.metrics}["ooms"] > 0) return "it risks steps that fail, which the oracle may not";
  const TrainingSetup& setup = scenario.setup;
  const bool varies =
      !setup.others.empty() || !setup.phases.empty() || setup.faults != Faults{.seed = setup.faults.seed};
  if (varies && !result.run.adjustments.empty())
    return "it moves while what is free changes, and no fixed choice can";
  return "the search for the oracle passed a better point over";
}

std::string reservation(const Standing& standing, const PolicyResult& result) {
  if (standing.rank[1] > 0) {
    return fmt::format(", though {} of its steps ran out of memory{}", Figures{result.metrics}.count("ooms"),
                       standing.lost.empty() ? " (none ran without)" : "");
  }
  return standing.rank[2] > 0 && standing.lost.empty()
             ? ", though it stays above the target (no policy without OOM stays inside)"
             : "";
}

// How far it is from the oracle, and what must be said against it.
std::string remark_on(const TrainingScenario& scenario, const Comparison& comparison,
                      const Standing& standing) {
  const PolicyResult& result = *comparison.find(standing.label);
  const std::string text = reservation(standing, result);
  const PolicyResult* oracle = comparison.find("oracle");
  if (oracle == nullptr) return text + ". No safe fixed choice was found, so there is no regret";
  const double regret = Figures{result.metrics}["regret"];
  return text + fmt::format(", {:.1f} % {} the best safe fixed choice ({}){}", 100 * std::abs(regret),
                            regret < 0 ? "above" : "short of", fmt::join(oracle->run.final_point, ", "),
                            regret < 0 ? ": " + above_oracle(scenario, result) : "");
}

std::vector<Standing> standings_of(const TrainingScenario& scenario, const Comparison& comparison) {
  std::vector<Standing> standings;
  for (const PolicyResult& result : comparison.policies) {
    if (result.policy == "oracle") continue;
    standings.push_back(training_standing(scenario, result));
    standings.back().remark = remark_on(scenario, comparison, standings.back());
  }
  return standings;
}

std::vector<std::string> parameter_names(const TrainingScenario& scenario) {
  std::vector<std::string> names;
  for (const Parameter& parameter : scenario.setup.bounds.parameters) names.push_back(parameter.name);
  return names;
}

// A workload whose sample counts as one pixel has no throughput in pixels to show.
bool has_pixels(const Comparison& comparison) {
  return std::any_of(comparison.policies.begin(), comparison.policies.end(), [](const PolicyResult& result) {
    const Figures figures{result.metrics};
    return !std::isnan(figures["pixels_per_s"]) && figures["pixels_per_s"] != figures["samples_per_s"];
  });
}

Table results_table(const TrainingScenario& scenario, const Comparison& comparison) {
  const std::string final = fmt::format("final ({})", fmt::join(parameter_names(scenario), ", "));
  auto columns = figure_columns("policy", {final, "peak", "mean peak", "peak reserved", "OOMs", "retries",
                                           "changes", "turns", "samples/s"});
  const bool pixels = has_pixels(comparison);
  if (pixels) columns.push_back({"Mpixel/s"});
  columns.push_back({"regret"});
  const bool front = scenario.objective == Objective::lq_first;
  if (front) columns.push_back({"front"});
  const std::vector<Standing> standings = standings_of(scenario, comparison);
  if (loses_any(standings)) columns.push_back(left("lost"));
  Table table{std::move(columns)};
  for (const PolicyResult& result : comparison.policies) {
    const Figures figures{result.metrics};
    std::vector<std::string> cells{result.label,
                                   fmt::format("({})", fmt::join(result.run.final_point, ", ")),
                                   figures.percent("peak_allocated_ratio"),
                                   figures.percent("mean_peak_ratio"),
                                   figures.percent("peak_reserved_ratio"),
                                   figures.count("ooms"),
                                   figures.count("alloc_retries"),
                                   figures.count("adjustments"),
                                   figures.count("direction_changes"),
                                   figures.fixed("samples_per_s", 1)};
    if (pixels) cells.push_back(fixed_text(figures["pixels_per_s"] / 1e6, 3));
    cells.push_back(figures.percent("regret"));
    if (front) cells.push_back(figures["on_front"] > 0 ? "*" : "");
    if (loses_any(standings)) cells.push_back(lost_by(standings, result.label));
    table.add_row(std::move(cells));
  }
  return table;
}

double found_value(const Expectation& expectation, const PolicyResult& result, const TrainingSetup& setup) {
  using Subject = Expectation::Subject;
  const ParameterSpace& space = setup.bounds;
  const auto place = static_cast<std::size_t>(expectation.number - 1);
  const TrainingRun& run = result.run;
  switch (expectation.subject) {
    case Subject::metric:
      return Figures{result.metrics}[expectation.name];
    case Subject::final_value:
      if (const auto moved = find_moved_parameter(setup, expectation.name)) {
        if (run.phase_points.empty()) return std::nan("");  // of the oracle
        return static_cast<double>(run.phase_points[moved->first][moved->second]);
      }
      return static_cast<double>(run.final_point[*space.find(expectation.name)]);
    case Subject::adjustment: {
      if (place >= run.adjustments.size()) return std::nan("");
      const Adjustment& change = run.adjustments[place];
      const auto value =
          expectation.name.empty() ? change.iteration : change.to[*space.find(expectation.name)];
      return static_cast<double>(value);
    }
    case Subject::oom: {
      std::int64_t left = expectation.number;
      for (const IterationRecord& record : run.iterations) {
        if (record.result == StepResult::oom && --left == 0) return static_cast<double>(record.iteration);
      }
      return std::nan("");
    }
  }
  return std::nan("");
}

Json point_json(const Point& point, const ParameterSpace& space) {
  Json json = Json::object();
  for (std::size_t i = 0; i < point.size(); ++i) json[space.parameters[i].name] = point[i];
  return json;
}

Json adjustments_json(const std::vector<Adjustment>& adjustments, const ParameterSpace& space) {
  Json list = Json::array();
  for (const Adjustment& adjustment : adjustments) {
    list.push_back({{"iteration", adjustment.iteration},
                    {"time_s", to_seconds(adjustment.time)},
                    {"from", point_json(adjustment.from, space)},
                    {"to", point_json(adjustment.to, space)},
                    {"reason", adjustment.reason}});
  }
  return list;
}

Json moved_phases_json(const TrainingRun& run, const TrainingSetup& setup) {
  Json list = Json::array();
  for (std::size_t i = 0; i < run.phase_points.size(); ++i) {
    list.push_back({{"name", setup.phases[setup.moved_phases[i].phase].name},
                    {"final", point_json(run.phase_points[i], setup.bounds)},
                    {"adjustments", adjustments_json(run.phase_adjustments[i], setup.bounds)}});
  }
  return list;
}

Json search_json(const BatchSearchRun& search) {
  const bool found = search.answer.action == SearcherAnswer::Action::found;
  Json json{{"found", found}, {"batch", found ? Json(search.answer.batch) : Json(nullptr)}};
  json["probes"] = search.trials.size();
  json["ooms"] = search.ooms;
  json["time_s"] = to_seconds(search.duration);
  json["reason"] = search.answer.reason;
  return json;
}

Json policy_json(const PolicyResult& result, const TrainingSetup& setup) {
  const ParameterSpace& space = setup.bounds;
  Json json;
  json["policy"] = result.policy;
  if (!result.profile.empty()) json["profile"] = result.profile;
  json["label"] = result.label;
  json["metrics"] = figures_json(result.metrics);
  json["final"] = point_json(result.run.final_point, space);
  json["time_s"] = to_seconds(result.run.duration);
  if (result.search) json["search"] = search_json(*result.search);
  if (!result.run.ended_early.empty()) json["ended_early"] = result.run.ended_early;
  json["adjustments"] = adjustments_json(result.run.adjustments, space);
  if (!result.run.phase_points.empty()) json["phases"] = moved_phases_json(result.run, setup);
  json["statistics"] = Json::object();
  for (const Statistic& statistic : result.run.statistics) {
    json["statistics"][statistic.name] = number_json(statistic.value);
  }
  return json;
}

Json curves_json(const TrainingRun& run, std::size_t parameters) {
  const auto curve = [&](const auto& value) {
    return run_curve(run.iterations, &IterationRecord::iteration, value);
  };
  Json json;
  json["stride"] = curve_stride(run.iterations.size(), kMostPoints);
  json["allocated"] = curve(&IterationRecord::step_peak_allocated);
  json["reserved"] = curve(&IterationRecord::step_peak_reserved);
  json["limit"] = curve([](const IterationRecord& step) { return step.memory.total; });
  json["points"] = Json::array();
  for (std::size_t i = 0; i < parameters; ++i) {
    json["points"].push_back(curve([i](const IterationRecord& step) { return step.point()[i]; }));
  }
  return json;
}

Json retries_json(const TrainingRun& run) {
  std::vector<RunMark> marks;
  std::uint64_t before = 0;
  for (const IterationRecord& step : run.iterations) {
    const std::uint64_t now = step.memory.alloc_retries;
    if (now > before) marks.push_back({step.iteration, step.iteration, now - before});
    before = now;
  }
  return marks_json(marks);
}

// By the product where there are several parameters: what a step asks for follows it.
bool grows(const Adjustment& change) {
  double share = 1;
  for (std::size_t i = 0; i < change.to.size(); ++i) {
    share *= static_cast<double>(change.to[i]) / static_cast<double>(change.from[i]);
  }
  return share > 1 || (share == 1 && change.to > change.from);
}

// Of those that became one mark, where they began and ended; a reason belongs to one change.
Json changes_json(const TrainingRun& run) {
  std::vector<RunMark> marks;
  for (const Adjustment& change : run.adjustments) marks.push_back({change.iteration, change.iteration, 1});
  Json list = Json::array();
  auto change = run.adjustments.begin();
  for (const RunMark& mark : merged_marks(marks, kMostMarks)) {
    const auto end = change + static_cast<std::ptrdiff_t>(mark.count);
    Json entry = mark_json(mark);
    entry.push_back(std::count_if(change, end, grows));
    entry.push_back(change->from);
    entry.push_back(std::prev(end)->to);
    if (mark.count == 1) entry.push_back(change->reason);
    list.push_back(std::move(entry));
    change = end;
  }
  return list;
}

Json run_json(const PolicyResult& result, std::size_t parameters) {
  Json json = curves_json(result.run, parameters);
  json["label"] = result.label;
  json["reference"] = result.policy == "oracle";
  json["final"] = result.run.final_point;
  if (!result.run.ended_early.empty()) json["ended_early"] = result.run.ended_early;
  json["metrics"] = figures_json(result.metrics);
  json["ooms"] = run_marks(result.run.iterations, &IterationRecord::iteration,
                           [](const IterationRecord& step) { return step.result == StepResult::oom; });
  json["retries"] = retries_json(result.run);
  json["changes"] = changes_json(result.run);
  return json;
}

// "predictive: validation began at (48, 128) and ended at (12, 128), 4 changes."
std::vector<std::string> moved_texts(const PolicyResult& result, const TrainingSetup& setup) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < result.run.phase_points.size(); ++i) {
    const Phase& phase = setup.phases[setup.moved_phases[i].phase];
    const std::size_t changes = result.run.phase_adjustments[i].size();
    lines.push_back(fmt::format("{}: {} began at ({}) and ended at ({}), {} change{}.", result.label,
                                phase.name, fmt::join(phase.point, ", "),
                                fmt::join(result.run.phase_points[i], ", "), changes,
                                changes == 1 ? "" : "s"));
  }
  return lines;
}

// Draws memory and parameters over iterations, all policies in one panel.
void draw_training(const TrainingScenario& scenario, const Comparison& comparison, const std::string& title,
                   const std::string& file) {
  const PictureFrame frame{.title = title,
                           .parameters = parameter_names(scenario),
                           .band_low = scenario.target.usage - scenario.target.margin,
                           .band_high = scenario.target.usage + scenario.target.margin};
  std::vector<PictureRun> runs;
  for (const PolicyResult& result : comparison.policies)
    runs.push_back({result.label, &result.run.iterations, result.policy == "oracle"});
  draw_trace_picture(frame, runs, file);
}

// Changes and failed steps. One that ran again after a restart stands twice, as it was run.
std::vector<std::string> tuner_decisions(const TrainingScenario& scenario, const TrainingRun& run) {
  std::vector<std::string> lines;
  for (const IterationRecord& step : run.iterations) {
    const std::string ran = fmt::format("iteration {} at {}", step.iteration, fmt::join(step.point(), ", "));
    if (step.result == StepResult::oom) lines.push_back(ran + " ran out of memory");
    if (!step.delta().empty())
      lines.push_back(ran + fmt::format(": changed by {}", fmt::join(step.delta(), ", ")));
  }
  const bool ended = !run.ended_early.empty();
  lines.push_back(fmt::format("{} at {} of {} after {} steps", ended ? "ended early" : "ended",
                              fmt::join(run.final_point, ", "), fmt::join(parameter_names(scenario), ", "),
                              run.iterations.size()));
  return lines;
}

/// Tuners of a training loop side by side, and the best fixed choice.
class TrainingExperiment : public ScenarioExperiment<TrainingScenario, Comparison> {
 public:
  using ScenarioExperiment::ScenarioExperiment;

  void run(const std::vector<std::string>& labels) override {
    if (!question_.decisions) {
      results_ = compare_policies(scenario_, labels);
    } else {  // nobody asks how good they were
      results_ = {run_policies(scenario_, labels,
                               [&](const PolicyEntry& entry) { return run_policy(scenario_, entry); })};
    }
  }

  [[nodiscard]] std::vector<Standing> standings() const override { return standings_of(scenario_, results_); }
  [[nodiscard]] BestRule best_rule() const override {
    return {
        "Best of those whose run came to its end: without OOM, then inside the target in the last "
        "quarter, then most work by the objective.",
        "No policy came to the end of its run"};
  }
  [[nodiscard]] std::string head_line() const override {
    const auto& limit = scenario_.setup.process.allocator.limit;
    const std::string objective =
        ranks_by_memory(scenario_) ? "memory (mean peak)" : objective_name(scenario_.objective);
    return fmt::format("{}: {} iterations on {}, target {} ± {}, objective {}", scenario_.name,
                       scenario_.setup.iterations, card_text(scenario_, limit),
                       percent_text(scenario_.target.usage), percent_text(scenario_.target.margin),
                       objective);
  }
  [[nodiscard]] std::vector<std::string> head() const override {
    std::vector<std::string> lines = ScenarioExperiment::head();
    if (!has_times(scenario_)) {
      lines.emplace_back("The model's steps were never timed: there are no rates (vramlab fit --times).");
    }
    return lines;
  }
  [[nodiscard]] std::vector<Table> tables() const override { return {results_table(scenario_, results_)}; }
  [[nodiscard]] std::vector<std::string> endings() const override {
    std::vector<std::string> lines;
    for (const PolicyResult& result : results_) {
      if (result.run.ended_early.empty()) continue;
      const auto& steps = result.run.iterations;
      lines.push_back(fmt::format("{} ended after iteration {} of {}: {}.", result.label,
                                  steps.empty() ? 0 : steps.back().iteration, scenario_.setup.iterations,
                                  result.run.ended_early));
    }
    for (const PolicyResult& result : results_) {
      for (std::string& line : moved_texts(result, scenario_.setup)) lines.push_back(std::move(line));
      if (result.search) lines.push_back(search_line(scenario_, result));
    }
    for (const std::string& line : negative_regrets()) lines.push_back(line);
    return lines;
  }

  [[nodiscard]] std::vector<Decisions> decisions() const override {
    std::vector<Decisions> all;
    for (const PolicyResult& result : results_) {
      all.push_back({result.label, tuner_decisions(scenario_, result.run)});
    }
    return all;
  }

  std::vector<std::string> write_files() override {
    std::vector<std::string> written;
    if (!question_.trace_dir.empty()) {
      traces_ = file_bases(all_labels(results_), question_.trace_dir);
      for (const PolicyResult& result : results_) {
        std::string& file = traces_[result.label];
        file += ".jsonl";
        write_trace(scenario_.setup.bounds, result.run.iterations, file);
      }
      for (const auto& [label, file] : traces_) written.push_back(file);
    }
    if (!question_.picture.empty()) {
      draw_training(scenario_, results_, head_line(), question_.picture);
      written.push_back(question_.picture);
    }
    return written;
  }
  [[nodiscard]] Json json() const override { return judged(comparison_json(scenario_, results_, traces_)); }
  [[nodiscard]] std::vector<Json> sections() const override {
    Json section = starred(training_section(scenario_, results_, {verdict(), head_line()}));
    section["notes"] = negative_regrets();
    return {std::move(section)};
  }

  [[nodiscard]] double value(const Expectation& expectation, const std::string& label) const override {
    const PolicyResult* result = find(label);
    // Without a safe fixed choice there is no oracle, and whatever is expected of it does not hold.
    return result != nullptr ? found_value(expectation, *result, scenario_.setup) : std::nan("");
  }
  [[nodiscard]] ValueRange range(const Expectation& expectation) const override {
    if (expectation.subject != Expectation::Subject::final_value)
      return ScenarioExperiment::range(expectation);
    const TrainingSetup& setup = scenario_.setup;
    const auto moved = find_moved_parameter(setup, expectation.name);
    const auto& parameters = (moved ? setup.moved_phases[moved->first].bounds : setup.bounds).parameters;
    const auto place =
        moved ? moved->second : setup.bounds.find(expectation.name).value_or(parameters.size());
    if (place >= parameters.size()) return {};
    return {static_cast<double>(parameters[place].low), static_cast<double>(parameters[place].high)};
  }
  [[nodiscard]] std::vector<Unmet> unmet() const override {
    const TrainingSetup& setup = scenario_.setup;
    std::vector<Unmet> unmet = unmet_faults(setup.faults, setup.iterations);
    for (std::size_t i = 0; i < setup.phases.size(); ++i) {
      const Phase& phase = setup.phases[i];
      if (phase.every <= setup.iterations) continue;
      unmet.push_back({fmt::format("/workload/phases/{}", i),
                       fmt::format("{} comes after every {} iterations, and the run has {}", phase.name,
                                   phase.every, setup.iterations)});
    }
    SimTime end{-1};
    for (const PolicyResult& result : results_) {
      if (result.run.ended_early.empty()) end = std::max(end, setup.begins + result.run.duration);
    }
    if (end < SimTime{0} || !has_times(scenario_)) return unmet;
    std::ranges::move(unmet_others(setup.others, end), std::back_inserter(unmet));
    return unmet;
  }
  [[nodiscard]] std::vector<std::string> around(const Expectation& expectation) const override {
    const PolicyResult* result = find(expectation.policy);
    if (result == nullptr) return {"  no fixed choice is safe"};
    return iterations_around(expectation, scenario_, result->run);
  }

 private:
  // Of those that did more than the oracle, a line each: why.
  [[nodiscard]] std::vector<std::string> negative_regrets() const {
    std::vector<std::string> lines;
    for (const PolicyResult& result : results_) {
      if (Figures{result.metrics}["regret"] < 0)
        lines.push_back(
            fmt::format("The regret of {} is negative: {}.", result.label, above_oracle(scenario_, result)));
    }
    return lines;
  }

  std::map<std::string, std::string> traces_;  ///< written, by label
};

}  // namespace

std::string search_line(const TrainingScenario& scenario, const PolicyResult& result) {
  const BatchSearchRun& search = *result.search;
  const std::string cost =
      fmt::format("{} probe{}, {} OOM{}{}", search.trials.size(), search.trials.size() == 1 ? "" : "s",
                  search.ooms, search.ooms == 1 ? "" : "s",
                  has_times(scenario) ? fmt::format(", {:.1f} s", to_seconds(search.duration)) : "");
  const auto& steps = result.run.iterations;
  const std::size_t batch = scenario.setup.bounds.find("batch").value();
  const std::int64_t first = steps.empty() ? 0 : steps.front().point()[batch];
  const auto entry = std::ranges::find(scenario.policies, result.label, &PolicyEntry::label);
  const std::string by = entry == scenario.policies.end() || !entry->search
                             ? "its search"
                             : fmt::format("its search ({})", entry->search->choice.use);
  if (search.answer.action == SearcherAnswer::Action::found) {
    return fmt::format("{} began at batch {}, which {} found in {}.", result.label, first, by, cost);
  }
  return fmt::format("{} began at the smallest batch, {}: {} found none in {} ({}).", result.label, first, by,
                     cost, search.answer.reason);
}

Json comparison_json(const TrainingScenario& scenario, const Comparison& comparison,
                     const std::map<std::string, std::string>& trace_files) {
  Json json;
  json["scenario"] = scenario.name;
  json["seed"] = scenario.seed;
  json["context_assumed"] = scenario.context_assumed;
  json["objective"] = objective_name(scenario.objective);
  json["timed"] = has_times(scenario);
  json["target"] = {{"usage", scenario.target.usage}, {"margin", scenario.target.margin}};
  json["policies"] = Json::array();
  for (const PolicyResult& result : comparison.policies) {
    const auto trace = trace_files.find(result.label);
    json["policies"].push_back(policy_json(result, scenario.setup));
    json["policies"].back()["trace_file"] = trace == trace_files.end() ? Json(nullptr) : Json(trace->second);
  }
  return json;
}

Json training_section(const TrainingScenario& scenario, const Comparison& comparison,
                      const SectionHead& head) {
  const Target& target = scenario.target;
  Json json = begun_section("training", scenario.name, head);
  json["description"] = scenario.description;
  json["iterations"] = scenario.setup.iterations;
  json["band"] = {target.usage - target.margin, target.usage + target.margin};
  json["metrics"] = metrics_json(training_metric_table());
  json["parameters"] = parameter_names(scenario);
  Bytes total = 0;
  json["policies"] = Json::array();
  for (const PolicyResult& result : comparison.policies) {
    json["policies"].push_back(run_json(result, scenario.setup.bounds.size()));
    if (!result.run.iterations.empty()) total = std::max(total, result.run.iterations.back().memory.total);
  }
  json["total"] = total;
  return json;
}

void require_trace_name(const std::string& file) {
  if (file.empty() || file.ends_with(".jsonl") || file.ends_with(".csv") ||
      file.ends_with(".perfetto.json")) {
    return;
  }
  throw InputError(file, "a trace's name must end in .jsonl, .csv or .perfetto.json.");
}

void write_trace(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                 const std::string& file, const std::string& title) {
  require_trace_name(file);
  OutputFile output{file};
  const TextSink sink = [&](std::string_view piece) { output.write(piece); };
  if (file.ends_with(".perfetto.json")) {
    write_trace_perfetto(title, space, records, sink);
  } else if (file.ends_with(".csv")) {
    write_trace_csv(space, records, sink);
  } else {
    write_trace_jsonl(space, records, sink);
  }
  output.commit();
}

Kind training_kind() {
  return {
      .name = "training",
      .table = training_table,
      .schema = [](const PolicySet& known) { return kind_schema(training_table(), known.tuners); },
      .metrics = training_metric_table,
      .read = [](const ScenarioDocument& document, const Question& question) -> std::unique_ptr<Experiment> {
        TrainingScenario scenario = read_training(document);
        require_cards(question, scenario, 1 + scenario.setup.more_cards.size(), "/more_devices");
        scenario.setup.make_performer = question.make_performer;
        return std::make_unique<TrainingExperiment>(std::move(scenario), question);
      },
      .sweep_metric = "regret",
      .has_picture = true,
      .has_traces = true,
      .has_steps = true};
}

}  // namespace vramlab
