#include "lab/whatif/view.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "lab/experiment.hpp"
#include "lab/kinds/snapshot/spec.hpp"
#include "lab/page/sections.hpp"
#include "lab/scenario/schema.hpp"
#include "sim/memory/oom_report.hpp"
#include "sim/memory/others/backends.hpp"

namespace vramlab {
namespace {

std::string verdict_on(const std::vector<SnapshotResult>& results) {
  const auto fits = [](const SnapshotResult& result) { return result.row.fit() == Fit::yes; };
  const auto fitting = std::ranges::count_if(results, fits);
  const auto open =
      std::ranges::count(results, Fit::open, [](const SnapshotResult& r) { return r.row.fit(); });
  if (fitting == 0 && open == 0) return fmt::format("None of the {} rows fits.", results.size());
  if (fitting == 0) {
    return fmt::format("Of no row it is known to fit; {} of {} are lower bounds.", open, results.size());
  }
  const auto least = std::ranges::min_element(results, {}, [&](const SnapshotResult& result) {
    return std::pair{!fits(result), result.row.outcome.highest_reserved};
  });
  return fmt::format("{} of {} rows fit; {} reserves the least, {}.", fitting, results.size(), least->label,
                     format_bytes(least->row.outcome.highest_reserved));
}

/// A program replayed under several settings and on several cards.
class SnapshotExperiment : public ScenarioExperiment<SnapshotScenario, std::vector<SnapshotResult>> {
 public:
  using ScenarioExperiment::ScenarioExperiment;

  [[nodiscard]] std::vector<std::string> labels() const override { return all_labels(scenario_.rows); }
  [[nodiscard]] std::string labelled() const override { return "row"; }

  void run(const std::vector<std::string>& labels) override {
    require_labels(labels);
    for (const SnapshotRow& row : scenario_.rows) {
      if (!is_wanted(labels, row.label)) continue;
      WhatIfQuestion question = row.question;
      question.maps = question_.report;
      const std::vector<WhatIfRow> rows = answer_whatif(scenario_.programs, question).rows;
      WhatIfRow answer = question.backends.empty() ? rows.front() : rows.back();
      Json json = whatif_row_json(program(), answer);
      results_.push_back({{row.label, snapshot_metrics(json)}, std::move(answer), std::move(json)});
    }
  }

  [[nodiscard]] std::string verdict() const override { return verdict_on(results_); }
  [[nodiscard]] std::string head_line() const override {
    return fmt::format("{}: {} actions of {}", scenario_.name, program().actions.size(), program().file);
  }
  [[nodiscard]] std::vector<std::string> head() const override {
    std::vector<std::string> lines{head_line()};
    for (const std::string& note : program().notes) lines.push_back("note: " + note);
    for (const SnapshotRow& row : scenario_.rows) {
      for (const BackendChoice& backend : row.question.backends)
        lines.push_back("note: " + backend_note(backend));
    }
    const std::string newer = newer_version_note(program().settings.torch);
    if (!newer.empty()) lines.push_back("note: " + newer);
    for (const std::string& warning : program().warnings) lines.push_back("warning: " + warning);
    return lines;
  }
  [[nodiscard]] std::vector<Table> tables() const override {
    Table table{{{"row", Table::Align::left},
                 {"alloc-conf", Table::Align::left},
                 {"card", Table::Align::left},
                 {"reserved"},
                 {"allocated"},
                 {"retries"},
                 {"fits", Table::Align::left}}};
    for (const SnapshotResult& result : results_) {
      const ProgramOutcome& outcome = result.row.outcome;
      table.add_row({result.label, conf_name(result.row.conf),
                     room_name(result.row) + (assumes_context(result.row) ? ", context assumed" : ""),
                     format_bytes(outcome.highest_reserved), format_bytes(outcome.highest_allocated),
                     fmt::format("{}", outcome.stats.num_alloc_retries), fit_text(program(), result.row)});
    }
    return {table};
  }
  [[nodiscard]] Json json() const override {
    Json json{{"scenario", scenario_.name}, {"rows", Json::array()}};
    for (const SnapshotResult& result : results_) {
      Json row{{"label", result.label}};
      row.update(result.json);
      json["rows"].push_back(std::move(row));
    }
    return json;
  }
  [[nodiscard]] std::vector<Json> sections() const override {
    std::vector<Json> sections;
    for (const SnapshotResult& result : results_) {
      if (!result.row.backend.is_native()) continue;  // has no history
      const SectionHead head{fmt::format("Fits: {}.", fit_text(program(), result.row)),
                             fmt::format("{} on {}", conf_name(result.row.conf), room_name(result.row))};
      sections.push_back(segments_section(result.row.kept->map, scenario_.name + ", " + result.label, head));
    }
    return sections;
  }

  [[nodiscard]] double value(const Expectation& expectation, const std::string& label) const override {
    return snapshot_figure(*find(label), expectation.name, expectation.mark);
  }
  [[nodiscard]] std::vector<std::string> around(const Expectation& expectation) const override {
    const ProgramOutcome& outcome = find(expectation.policy)->row.outcome;
    std::vector<std::string> lines;
    if (outcome.first_oom) {
      const std::size_t action = outcome.first_oom->action;
      const std::string mark = mark_after(program(), action);
      lines.push_back(fmt::format("  first OOM at action {} ({}:{}){}", action + 1, program().file,
                                  program().actions[action].source,
                                  mark.empty() ? "" : " before mark " + mark));
      lines.push_back("  " +
                      backend_oom_message(find(expectation.policy)->row.backend, outcome.first_oom->oom));
      for (const std::string& line : oom_details(outcome.first_oom->oom)) lines.push_back("  " + line);
    }
    if (outcome.fault) lines.push_back("  ended by: " + *outcome.fault);
    for (const MarkFigures& mark : outcome.marks) {
      if (mark.text != expectation.mark) continue;
      lines.push_back(fmt::format("  at {}: allocated {}, reserved {}", mark.text,
                                  mark.stats.allocated_bytes.all().current,
                                  mark.stats.reserved_bytes.all().current));
    }
    lines.push_back(fmt::format("  highest allocated {} after action {}, highest reserved {}",
                                outcome.highest_allocated, outcome.highest_allocated_at + 1,
                                outcome.highest_reserved));
    return lines;
  }

 private:
  [[nodiscard]] const ClientProgram& program() const { return scenario_.programs.front(); }
};

}  // namespace

Kind snapshot_kind() {
  return {
      .name = "snapshot",
      .table = snapshot_table,
      .schema =
          [](const PolicySet& /*known*/) { return fields_schema(snapshot_table().fields, /*open=*/false); },
      .metrics = snapshot_metric_table,
      .read = [](const ScenarioDocument& document, const Question& question) -> std::unique_ptr<Experiment> {
        return std::make_unique<SnapshotExperiment>(read_snapshot(document), question);
      }};
}

}  // namespace vramlab
