#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "lab/experiment.hpp"
#include "lab/kinds/epoch/monitor.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/page/drawing.hpp"
#include "lab/page/sections.hpp"
#include "lab/scenario/faults.hpp"
#include "lab/scenario/schema.hpp"

namespace vramlab {
namespace {

std::string lost_samples(const EpochResult& result) {
  const Figures figures{result.metrics};
  if (has_finished(result.metrics)) return "";
  const double lost = figures["untrained_samples"] - figures["misfits"];
  return fmt::format("{}{:.0f} samples left out", result.run.ended_early.empty() ? "" : "ended early, ",
                     lost);
}

// Least left out, then no OOM, then throughput or, where steps have no times, memory used.
Standing standing_of(const EpochResult& result) {
  const Figures figures{result.metrics};
  const bool timed = !std::isnan(figures["samples_per_s"]);
  std::string remark = timed ? fmt::format(", {} samples/s", figures.fixed("samples_per_s", 1))
                             : fmt::format(", {} of the memory used", figures.percent("budget_use"));
  const bool finished = has_finished(result.metrics);
  if (figures["ooms"] > 0) {
    remark += fmt::format(", though {} batches ran out of memory{}", figures.count("ooms"),
                          finished ? " (none ran without)" : "");
  } else {
    remark += ", without an OOM";
  }
  if (figures["misfits"] > 0) remark += fmt::format("; {} samples fit nowhere", figures.count("misfits"));
  return {.label = result.label,
          .lost = lost_samples(result),
          .rank = {figures["untrained_samples"], figures["ooms"] > 0 ? 1.0 : 0.0,
                   -figures[timed ? "samples_per_s" : "budget_use"]},
          .remark = std::move(remark)};
}

// The oracle has none: the others are measured by it.
std::vector<Standing> standings_of(const std::vector<EpochResult>& results) {
  std::vector<Standing> standings;
  for (const EpochResult& result : results) {
    if (!result.oracle) standings.push_back(standing_of(result));
  }
  return standings;
}

// Why it did more than the best fixed choice.
std::string above_oracle(const EpochResult& result) {
  if (Figures{result.metrics}["ooms"] > 0) return "it risks batches that fail, which the oracle may not";
  if (!result.run.adjustments.empty())
    return "it moves while what is free changes, or between the values that were tried";
  return "the search for the oracle passed a better choice over";
}

std::string data_shares(const EpochScenario& scenario) {
  std::vector<double> percent(scenario.setup.tasks.size(), 0);
  for (const Sample& sample : scenario.setup.samples) ++percent[sample.task];
  for (double& one : percent) one = 100.0 * one / static_cast<double>(scenario.setup.samples.size());
  return fmt::format("{:.1f}", fmt::join(percent, "/"));
}

// Where the tuner left what it moves: "6.5 GiB", "24 samples".
std::string final_limit(const EpochScenario& scenario, const EpochResult& result) {
  const auto tuner = scenario.tuners.find(result.label);
  if (tuner == scenario.tuners.end() || result.run.final_point.empty()) return kNoFigure;
  const std::int64_t value = result.run.final_point.front();
  return tuner->second.tuning.moves == BatchTuning::Moves::budget
             ? format_bytes(static_cast<Bytes>(value) * 1_MiB)
             : fmt::format("{} samples", value);
}

Table results_table(const EpochScenario& scenario, const std::vector<EpochResult>& results) {
  auto columns =
      figure_columns("policy", {"OOMs", "left out", "batches", "steps", "effective", "samples/s",
                                "budget used", "peak", "peak reserved", "padding", "error", "bias", "unsafe",
                                fmt::format("gradient {}", fmt::join(scenario.setup.tasks, "/"))});
  const std::vector<Standing> standings = standings_of(results);
  const bool tuned = !scenario.tuners.empty();
  const bool regret = std::ranges::any_of(results, [](const auto& one) { return one.oracle.has_value(); });
  if (tuned) columns.insert(columns.end(), {Table::Column{"tuner ends at"}, Table::Column{"changes"}});
  if (regret) columns.push_back({"regret"});
  if (loses_any(standings)) columns.push_back(left("lost"));
  Table table{std::move(columns)};
  for (const EpochResult& result : results) {
    const Figures figures{result.metrics};
    const std::string low = figures.count("smallest_step");
    const std::string high = figures.count("largest_step");
    std::vector<double> gradient = result.run.gradient_shares;
    for (double& share : gradient) share *= 100;
    std::vector<std::string> cells{result.label,
                                   figures.count("ooms"),
                                   figures.count("untrained_samples"),
                                   figures.count("batches"),
                                   figures.count("optimizer_steps"),
                                   low == high ? low : low + "-" + high,
                                   figures.fixed("samples_per_s", 1),
                                   figures.percent("budget_use"),
                                   figures.percent("peak_allocated_ratio"),
                                   figures.percent("peak_reserved_ratio"),
                                   figures.percent("padding_share"),
                                   figures.percent("predictor_error"),
                                   figures.percent("predictor_bias"),
                                   figures.percent("predictor_unsafe_share"),
                                   fmt::format("{:.0f}", fmt::join(gradient, "/"))};
    if (tuned) cells.insert(cells.end(), {final_limit(scenario, result), figures.count("adjustments")});
    if (regret) cells.push_back(figures.percent("regret"));
    if (loses_any(standings)) cells.push_back(lost_by(standings, result.label));
    table.add_row(std::move(cells));
  }
  return table;
}

/// The figures of one batch. `number` counts from 1.
struct BatchFigures {
  std::int64_t number = 0;
  Bytes allocated = 0;  ///< its peak; of a failed batch what it would have had at least
  Bytes reserved = 0;
  Bytes predicted = 0;  ///< peak that was expected; 0 = nothing was predicted
  Bytes budget = 0;     ///< that a tuner had set; 0 = none
  Bytes total = 0;      ///< what the program may use
  std::int64_t samples = 0;
  std::int64_t positions = 0;  ///< as collated, padding included
  bool ran_out = false;
  bool oversize = false;  ///< a single sample, predicted over budget
};

/// Keeps the figures of all batches, 72 bytes each, and hands every batch on. Where `keeps_decisions`, also
/// what each was made of.
struct BatchHistory : BatchListener {
  std::vector<BatchFigures> batches;
  bool keeps_decisions = false;
  std::vector<std::string> decisions;
  BatchListener* next = nullptr;  ///< may be null

  void batch_ends(const BatchRecord& batch) override {
    const bool ran_out = batch.result == StepResult::oom;
    const bool predicts = batch.predicted.likely > 0;
    batches.push_back(
        {.number = batch.number,
         .allocated = ran_out ? std::max(batch.peak_allocated, batch.wanted) : batch.peak_allocated,
         .reserved = batch.peak_reserved,
         .predicted = predicts ? batch.allocated_before + batch.predicted.likely : 0,
         .budget = batch.limits.budget.value_or(0),
         .total = batch.total,
         .samples = batch.shape.samples,
         .positions = batch.padded_positions,
         .ran_out = ran_out,
         .oversize = batch.oversize});
    if (keeps_decisions) {
      decisions.push_back(fmt::format("batch {} of {}{}: {}", batch.number, fmt::join(batch.samples, ", "),
                                      batch.checkpointing ? " with checkpointing" : "",
                                      ran_out                             ? "oom"
                                      : batch.result == StepResult::error ? "error"
                                                                          : "ok"));
    }
    if (next != nullptr) next->batch_ends(batch);
  }
  void epoch_ends(std::int64_t epoch, const EpochTotals& totals) override {
    if (next != nullptr) next->epoch_ends(epoch, totals);
  }
};

// `history` may be null.
EpochResult run_one(const EpochScenario& scenario, const PolicyEntry& entry, const std::string& trace_folder,
                    BatchHistory* history, std::vector<std::string>& files) {
  std::optional<EpochMonitor> monitor;
  BatchListener* listener = nullptr;
  if (!trace_folder.empty()) listener = &monitor.emplace(scenario, entry.label, trace_folder);
  if (history != nullptr) {
    history->next = listener;
    listener = history;
  }
  EpochResult result = run_composer(scenario, entry, listener);
  if (history != nullptr) history->next = nullptr;  // the monitor ends here
  if (!monitor) return result;
  const auto written = monitor->finish(result);
  files.insert(files.end(), written.begin(), written.end());
  return result;
}

Json curves_json(const std::vector<BatchFigures>& batches) {
  const auto curve = [&](const auto& value) { return run_curve(batches, &BatchFigures::number, value); };
  Json json;
  json["stride"] = curve_stride(batches.size(), kMostPoints);
  json["allocated"] = curve(&BatchFigures::allocated);
  json["reserved"] = curve(&BatchFigures::reserved);
  json["limit"] = curve(&BatchFigures::total);
  const bool predicts = std::any_of(batches.begin(), batches.end(),
                                    [](const BatchFigures& batch) { return batch.predicted > 0; });
  json["predicted"] = predicts ? curve(&BatchFigures::predicted) : Json::array();
  if (!batches.empty() && batches.front().budget > 0) json["budget"] = curve(&BatchFigures::budget);
  json["points"] = {curve(&BatchFigures::samples), curve(&BatchFigures::positions)};
  return json;
}

// Each as the page shows one of training: first and last batch, how many, how many grew, from, to, and why.
Json changes_json(const std::vector<Adjustment>& adjustments) {
  Json list = Json::array();
  for (const Adjustment& change : adjustments) {
    list.push_back({change.iteration, change.iteration, 1, change.to > change.from ? 1 : 0, change.from,
                    change.to, change.reason});
  }
  return list;
}

Json tuner_json(const BatchTuner& tuner, const EpochRun& run) {
  const std::string name = tuner.tuning.moves == BatchTuning::Moves::budget ? "budget_mib" : "batch_size";
  Json json{{"policy", tuner.choice.use}};
  if (!tuner.choice.profile.empty()) json["profile"] = tuner.choice.profile;
  json["moves"] = name;
  json["final"] = run.final_point.empty() ? Json(nullptr) : Json(run.final_point.front());
  json["adjustments"] = Json::array();
  for (const Adjustment& change : run.adjustments) {
    json["adjustments"].push_back({{"batch", change.iteration},
                                   {"time_s", to_seconds(change.time)},
                                   {"from", change.from.front()},
                                   {"to", change.to.front()},
                                   {"reason", change.reason}});
  }
  return json;
}

Json epoch_section(const EpochScenario& scenario, const std::vector<EpochResult>& results,
                   const std::vector<BatchHistory>& histories, const SectionHead& head) {
  Json json = begun_section("epoch", scenario.name, head);
  json["description"] = scenario.description;
  json["notes"] = scenario.notes;
  json["metrics"] = metrics_json(epoch_metric_table());
  json["parameters"] = {"samples", "positions"};
  std::int64_t last = 1;
  Bytes total = 0;
  json["policies"] = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& batches = histories[i].batches;
    Json policy = curves_json(batches);
    policy["label"] = results[i].label;
    if (!results[i].run.ended_early.empty()) policy["ended_early"] = results[i].run.ended_early;
    policy["metrics"] = figures_json(results[i].metrics);
    policy["changes"] = changes_json(results[i].run.adjustments);
    policy["ooms"] = run_marks(batches, &BatchFigures::number, &BatchFigures::ran_out);
    policy["oversize"] = run_marks(batches, &BatchFigures::number, &BatchFigures::oversize);
    json["policies"].push_back(std::move(policy));
    if (batches.empty()) continue;
    last = std::max(last, batches.back().number);
    total = std::max(total, batches.back().total);
  }
  json["iterations"] = last;
  json["total"] = total;
  return json;
}

/// Composers side by side over a data set.
class EpochExperiment : public ScenarioExperiment<EpochScenario, std::vector<EpochResult>> {
 public:
  using ScenarioExperiment::ScenarioExperiment;

  void run(const std::vector<std::string>& labels) override {
    require_labels(labels);
    std::map<std::string, std::string> folders;  // by label
    if (!question_.trace_dir.empty()) {
      std::vector<std::string> all = this->labels();
      if (!scenario_.tuners.empty()) all.emplace_back("oracle");
      folders = file_bases(all, question_.trace_dir);
    }
    results_ = run_policies(scenario_, labels, [&](const PolicyEntry& entry) {
      histories_.emplace_back();
      histories_.back().keeps_decisions = question_.decisions;
      const bool keeps = question_.report || question_.decisions;
      return run_one(scenario_, entry, folders[entry.label], keeps ? &histories_.back() : nullptr, files_);
    });
    if (has_oracle_ && !question_.decisions) add_oracle(folders["oracle"]);
  }
  void leave_out_oracle() override { has_oracle_ = false; }

  [[nodiscard]] std::vector<Standing> standings() const override { return standings_of(results_); }
  [[nodiscard]] BestRule best_rule() const override {
    return {
        std::string{"Best of those that left out no sample but those that fit nowhere: without OOM, then "} +
            (scenario_.model->timed() ? "most samples/s." : "most memory used."),
        "No policy trained on every sample"};
  }
  [[nodiscard]] std::string head_line() const override {
    const EpochSetup& setup = scenario_.setup;
    const auto& limit = setup.process.allocator.limit;
    const std::string effective = setup.target_batch == 0
                                      ? "every batch a step"
                                      : fmt::format("effective batch {}", setup.target_batch);
    return fmt::format("{}: {} samples ({} %), {} epoch{}, {}, on {}", scenario_.name, setup.samples.size(),
                       data_shares(scenario_), setup.epochs, setup.epochs == 1 ? "" : "s", effective,
                       card_text(scenario_, limit));
  }
  [[nodiscard]] std::vector<Table> tables() const override { return {results_table(scenario_, results_)}; }
  [[nodiscard]] std::vector<std::string> endings() const override {
    std::vector<std::string> lines;
    for (const EpochResult& result : results_) {
      if (!result.run.ended_early.empty()) {
        lines.push_back(fmt::format("{} ended early: {}.", result.label, result.run.ended_early));
      }
      const std::int64_t ooms = result.run.phases.ooms;
      if (ooms > 0)
        lines.push_back(fmt::format("{}: phases that ran out of memory: {}.", result.label, ooms));
      const std::int64_t failures = result.run.totals.failures;
      if (failures > 0)
        lines.push_back(fmt::format("{}: batches lost to errors: {}.", result.label, failures));
      if (result.oracle) lines.push_back(oracle_line(*result.oracle));
    }
    for (std::string& line : negative_regrets()) lines.push_back(std::move(line));
    return lines;
  }
  [[nodiscard]] std::vector<Decisions> decisions() const override {
    std::vector<Decisions> all;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      all.push_back({results_[i].label, histories_[i].decisions});
      const EpochRun& run = results_[i].run;
      all.back().lines.push_back(
          fmt::format("{} after {} steps of the optimizer; {} phases ran out of memory",
                      run.ended_early.empty() ? "ended" : "ended early", run.totals.steps, run.phases.ooms));
    }
    return all;
  }
  [[nodiscard]] std::vector<Unmet> unmet() const override {
    const EpochSetup& setup = scenario_.setup;
    std::int64_t batches = 0;
    SimTime end{0};
    for (const EpochResult& result : results_) {
      if (!result.run.ended_early.empty()) continue;
      batches = std::max(batches, result.run.state.batches);
      end = std::max(end, result.run.state.time);
    }
    if (batches == 0) return {};
    std::vector<Unmet> unmet = unmet_faults(setup.faults, batches);
    for (std::size_t i = 0; i < setup.phases.size(); ++i) {
      const EpochPhase& phase = setup.phases[i];
      if (phase.every <= batches) continue;
      unmet.push_back({fmt::format("/workload/phases/{}", i),
                       fmt::format("{} comes after every {} batches, and there are {} at most", phase.name,
                                   phase.every, batches)});
    }
    if (scenario_.model->timed())
      std::ranges::move(unmet_others(setup.others, end), std::back_inserter(unmet));
    return unmet;
  }
  // The monitor writes while the run goes on.
  std::vector<std::string> write_files() override { return files_; }
  [[nodiscard]] Json json() const override { return judged(epoch_json(scenario_, results_)); }
  [[nodiscard]] std::vector<Json> sections() const override {
    Json section = starred(epoch_section(scenario_, results_, histories_, {verdict(), head_line()}));
    for (const EpochResult& result : results_) {
      if (result.oracle) section["notes"].push_back(oracle_line(*result.oracle));
    }
    for (std::string& line : negative_regrets()) section["notes"].push_back(std::move(line));
    return {std::move(section)};
  }

 private:
  // Run once more, to be looked at as the others are.
  void add_oracle(const std::string& trace_folder) {
    const auto found = find_epoch_oracle(scenario_, question_.threads);
    if (!found) return;
    if (found->limit) scenario_.tuners["oracle"] = *found->limit;
    EpochScenario simulated = scenario_;
    simulated.setup.make_performer = nullptr;
    histories_.emplace_back();
    EpochResult oracle = run_one(simulated, found->entry, trace_folder,
                                 question_.report ? &histories_.back() : nullptr, files_);
    oracle.policy = "oracle";
    oracle.oracle = found->note;
    results_.push_back(std::move(oracle));
    add_regrets(scenario_, results_.back(), results_);
  }

  // Of those that did more than the oracle, a line each: why.
  [[nodiscard]] std::vector<std::string> negative_regrets() const {
    std::vector<std::string> lines;
    for (const EpochResult& result : results_) {
      if (Figures{result.metrics}["regret"] >= 0 || result.oracle) continue;
      if (std::isnan(Figures{result.metrics}["regret"])) continue;
      lines.push_back(fmt::format("The regret of {} is negative: {}.", result.label, above_oracle(result)));
    }
    return lines;
  }

  bool has_oracle_ = true;
  std::vector<BatchHistory> histories_;
  std::vector<std::string> files_;
};

}  // namespace

Json epoch_json(const EpochScenario& scenario, const std::vector<EpochResult>& results) {
  Json json;
  json["scenario"] = scenario.name;
  json["seed"] = scenario.seed;
  json["context_assumed"] = scenario.context_assumed;
  json["notes"] = scenario.notes;
  json["series"] = scenario.series_origin.empty() ? Json(nullptr) : Json(scenario.series_origin);
  json["policies"] = Json::array();
  for (const EpochResult& result : results) {
    Json entry;
    entry["policy"] = result.policy;
    entry["profile"] = result.profile;
    entry["label"] = result.label;
    entry["metrics"] = figures_json(result.metrics);
    entry["tasks"] = task_json(scenario.setup, result.run);
    const EpochRun& run = result.run;
    if (!scenario.setup.phases.empty()) {
      entry["phases"] = {{"ooms", run.phases.ooms}, {"time_s", to_seconds(run.phases.time)}};
    }
    if (scenario.setup.faults != Faults{.seed = scenario.seed}) {
      entry["faults"] = {{"errors", run.totals.failures},
                         {"heavy_steps", run.faults.heavy_steps},
                         {"heavy_ooms", run.faults.heavy_ooms},
                         {"missing_readings", run.faults.missing_readings},
                         {"leaked_bytes", run.faults.leaked}};
    }
    if (!result.run.ended_early.empty()) entry["ended_early"] = result.run.ended_early;
    if (result.oracle) entry["oracle"] = oracle_json(*result.oracle);
    if (const auto tuner = scenario.tuners.find(result.label); tuner != scenario.tuners.end()) {
      entry["tuner"] = tuner_json(tuner->second, run);
    }
    for (const Statistic& statistic : result.run.statistics) {
      entry["statistics"][statistic.name] = number_json(statistic.value);
    }
    json["policies"].push_back(std::move(entry));
  }
  return json;
}

Kind epoch_kind() {
  return {
      .name = "epoch",
      .table = epoch_table,
      .schema = [](const PolicySet& known) { return kind_schema(epoch_table(), known.composers); },
      .metrics = epoch_metric_table,
      .read = [](const ScenarioDocument& document, const Question& question) -> std::unique_ptr<Experiment> {
        EpochScenario scenario = read_epoch(document);
        require_cards(question, scenario, 1 + scenario.setup.more_cards.size(), "/more_devices");
        scenario.setup.make_performer = question.make_performer;
        return std::make_unique<EpochExperiment>(std::move(scenario), question);
      },
      .sweep_metric = "samples_per_s",
      .has_traces = true,
      .has_steps = true};
}

}  // namespace vramlab
