// vramlab matrix: every tuner on every scenario.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/best.hpp"
#include "lab/experiment.hpp"
#include "lab/matrix/tuner_matrix.hpp"
#include "lab/metric.hpp"
#include "lab/scenario/file.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

void add_matrix_options(Options& options) {
  options.add_options()(
      "faults", po::value<std::vector<std::string>>()->composing()->value_name("SCENARIO"),
      "run every scenario with the faults and other processes of this one, too; repeatable")(
      "seeds", po::value<std::int64_t>()->default_value(5)->value_name("N"),
      "runs with seeds 1 to N where faults are random")("picture", text_value("FILE.svg"),
                                                        "draw a heat map of regret");
  add_plugin_option(options);
  add_threads_option(options);
  add_output_options(options);
}

// What is named must be a training scenario; what else lies in a folder is passed over.
std::vector<TrainingScenario> read_all(const std::vector<std::string>& paths,
                                       const std::shared_ptr<const PolicySet>& policies) {
  std::vector<TrainingScenario> scenarios;
  for (const std::string& file : scenario_files(paths)) {
    const ScenarioDocument document = read_document(file, policies);
    if (kind_of(document).has_steps) {
      scenarios.push_back(read_training(document));
    } else if (std::find(paths.begin(), paths.end(), file) != paths.end()) {
      throw InputError(file, "is of kind " + document.kind + "; tuners run in scenarios of kind training.");
    }
  }
  if (scenarios.empty()) throw InputError(paths.front(), "holds no scenario of kind training.");
  return scenarios;
}

std::string row_name(const MatrixRow& row) {
  return row.faults.empty() ? row.scenario : row.scenario + " + " + row.faults;
}

// The rows whose card has a context that nobody measured.
std::string assumed_contexts(const std::vector<MatrixRow>& rows) {
  std::string names;
  for (const MatrixRow& row : rows) {
    if (row.context_assumed) names += (names.empty() ? "" : ", ") + row_name(row);
  }
  return names;
}

// In tenths; what rounds to nothing has no sign.
std::string percent(double share) { return fmt::format("{:.1f} %", std::round(1000 * share) / 10 + 0.0); }

// Where no fixed choice is safe there is no regret.
std::string percent(const std::optional<double>& share) { return share ? percent(*share) : kNoFigure; }

// Regret, and behind it how many steps failed.
std::string cell_text(const MatrixCell& cell) {
  std::string text = percent(cell.mean_regret);
  if (cell.ended_early) return text + " ended";
  if (cell.ooms > 0) text += fmt::format(" ({:.3g})", cell.ooms);
  return text;
}

Table regret_table(const std::vector<MatrixRow>& rows, const std::vector<std::string>& labels) {
  std::vector<Table::Column> columns{left("regret on")};
  for (const std::string& label : labels) columns.push_back({label});
  Table table{std::move(columns)};
  for (const MatrixRow& row : rows) {
    std::vector<std::string> cells{row_name(row)};
    for (const MatrixCell& cell : row.cells) cells.push_back(cell_text(cell));
    table.add_row(std::move(cells));
  }
  return table;
}

bool any_below_oracle(const std::vector<MatrixRow>& rows) {
  return std::ranges::any_of(rows, [](const MatrixRow& row) {
    return std::ranges::any_of(
        row.cells, [](const MatrixCell& cell) { return cell.mean_regret && *cell.mean_regret < 0; });
  });
}

Table summary_table(const std::vector<MatrixSummary>& summaries) {
  Table table{{left("tuner"), "median regret", "worst regret", "unfinished", "rows with OOM", "OOMs",
               "changes", "evaluations", "turns", "best"}};
  for (const MatrixSummary& one : summaries) {
    table.add_row({one.label, percent(one.median_regret), percent(one.worst_regret),
                   fmt::format("{:.0f}", one.unfinished_rows), fmt::format("{:.0f}", one.rows_with_ooms),
                   fmt::format("{:.4g}", one.ooms), fmt::format("{:.4g}", one.median_adjustments),
                   fmt::format("{:.0f}", one.worst_evaluations), fmt::format("{:.0f}", one.worst_turns),
                   std::to_string(one.best_rows)});
  }
  return table;
}

// What `predictive` did, row by row: the figures it is meant to keep low.
Table settling_table(const std::vector<MatrixRow>& rows, const std::vector<std::string>& labels) {
  Table table{{left("predictive on"), "seeds", "regret", "worst", "OOMs", "changes", "turns", "evaluations",
               "settled", "fault cost"}};
  const auto who =
      static_cast<std::size_t>(std::find(labels.begin(), labels.end(), "predictive") - labels.begin());
  for (const MatrixRow& row : rows) {
    const MatrixCell& cell = row.cells[who];
    table.add_row({row_name(row), std::to_string(row.seeds), percent(cell.mean_regret),
                   percent(cell.worst_regret), fmt::format("{:.3g}", cell.ooms),
                   fmt::format("{:.4g}", cell.adjustments), fmt::format("{:.0f}", cell.direction_changes),
                   fmt::format("{:.0f}", cell.evaluations_to_settle), percent(cell.settled_at),
                   percent(cell.disturbance_cost)});
  }
  return table;
}

Json matrix_json(const std::vector<MatrixRow>& rows, const std::vector<std::string>& labels) {
  Json list = Json::array();
  for (const MatrixRow& row : rows) {
    Json json{{"scenario", row.scenario}, {"faults", row.faults}, {"seeds", row.seeds}};
    json["context_assumed"] = row.context_assumed;
    json["objective"] = row.objective;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const MatrixCell& cell = row.cells[i];
      json["tuners"][labels[i]] = {
          {"mean_regret", cell.mean_regret ? number_json(*cell.mean_regret) : Json(nullptr)},
          {"worst_regret", cell.worst_regret ? number_json(*cell.worst_regret) : Json(nullptr)},
          {"ooms", number_json(cell.ooms)},
          {"adjustments", number_json(cell.adjustments)},
          {"evaluations_to_settle", number_json(cell.evaluations_to_settle)},
          {"settled_at", number_json(cell.settled_at)},
          {"direction_changes", number_json(cell.direction_changes)},
          {"disturbance_cost", number_json(cell.disturbance_cost)},
          {"inside_target", number_json(cell.inside_target)},
          {"ended_early", cell.ended_early},
          {"finished", cell.finished}};
    }
    list.push_back(std::move(json));
  }
  return {{"rows", std::move(list)}};
}

HeatMap heat_map(const std::vector<MatrixRow>& rows, const std::vector<std::string>& labels) {
  constexpr double kHot = 0.5;  // of the work of the best fixed choice: beyond it all is equally bad
  HeatMap map{
      .title = "Regret of every tuner: work lost against the best safe fixed choice",
      .legend =
          "Framed: steps ran out of memory, how many in brackets unless the run ended. Red from 50 % on.",
      .columns = labels,
      .rows = {},
      .cells = {}};
  for (const MatrixRow& row : rows) {
    map.rows.push_back(row_name(row));
    std::vector<HeatCell> cells;
    for (const MatrixCell& cell : row.cells) {
      cells.push_back({cell.mean_regret.value_or(0) / kHot, cell_text(cell), cell.ooms > 0});
    }
    map.cells.push_back(std::move(cells));
  }
  return map;
}

BestRule matrix_rule() {
  return {"Best of those that finished every row: fewest rows with OOM, then least median regret.",
          "No tuner finished every row"};
}

std::string verdict(const std::vector<MatrixSummary>& summaries, std::size_t rows) {
  std::vector<Standing> standings;
  for (const MatrixSummary& one : summaries) {
    const bool finished = one.unfinished_rows == 0;
    standings.push_back(
        {.label = one.label,
         .lost = finished ? "" : fmt::format("which did not finish {:.0f}", one.unfinished_rows),
         .rank = {one.unfinished_rows, one.rows_with_ooms, one.median_regret.value_or(0)},
         .remark = fmt::format(", with OOM in {:.0f} of {} rows", one.rows_with_ooms, rows)});
    if (one.median_regret) {
      standings.back().remark += fmt::format(" and {} regret on the median", percent(*one.median_regret));
    }
  }
  return verdict_of(standings, matrix_rule());
}

// By what the rows measure regret: "Objective: pixels in 3, samples_per_s in 1 rows."
std::string objectives(const std::vector<MatrixRow>& rows) {
  std::string text;
  for (const std::string& name : objective_names()) {
    const auto count = std::ranges::count(rows, name, &MatrixRow::objective);
    if (count > 0) text += fmt::format("{}{} in {}", text.empty() ? "" : ", ", name, count);
  }
  return "Objective: " + text + (rows.size() == 1 ? " row." : " rows.");
}

int run_matrix(const Arguments& arguments, Output& output) {
  const std::string picture = text_of(arguments, "picture");
  require_output_names(operands(arguments), {text_of(arguments, "json"), picture});
  if (!picture.empty() && fs::path(picture).extension() != ".svg") {
    throw InputError(picture, "a heat map's name must end in .svg.");
  }
  const std::int64_t seeds = arguments["seeds"].as<std::int64_t>();
  if (seeds < 1 || seeds > 1000) throw InputError("", "--seeds must be from 1 to 1000.");
  const auto policies = chosen_policies(arguments, output);
  const std::vector<std::string> labels = matrix_labels(*policies);
  const std::vector<TrainingScenario> scenarios = read_all(operands(arguments), policies);
  std::vector<TrainingScenario> faults;
  if (arguments.count("faults") > 0) {
    faults = read_all(texts_of(arguments, "faults"), policies);
  }
  std::vector<MatrixTask> tasks;
  for (const TrainingScenario& scenario : scenarios) {
    tasks.push_back({&scenario, nullptr});
    for (const TrainingScenario& fault : faults) tasks.push_back({&scenario, &fault});
  }
  const auto rows = tuner_matrix(tasks, seeds, chosen_threads(arguments), *policies);
  const auto summaries = summarise(rows, labels);
  output.line(verdict(summaries, rows.size()));
  output.line(objectives(rows));
  output.line(matrix_rule().head);
  output.next_table(summary_table(summaries));
  output.next_table(regret_table(rows, labels));
  if (any_below_oracle(rows)) output.line(kBelowOracle);
  output.next_table(settling_table(rows, labels));
  if (const std::string names = assumed_contexts(rows); !names.empty()) {
    output.line("\nContext assumed, not measured on the card: {}.", names);
  }
  if (!picture.empty()) {
    draw_heat_map(heat_map(rows, labels), picture);
    output.wrote(picture);
  }
  output.json(matrix_json(rows, labels));
  return kDone;
}

}  // namespace

Verb matrix_verb() {
  return {.name = "matrix",
          .summary = "every tuner on every training scenario: regret, failures, changes",
          .operands = "SCENARIO...",
          .count = {1, 1000},
          .example = "vramlab matrix scenarios --picture matrix.svg",
          .add_options = add_matrix_options,
          .run = run_matrix};
}

}  // namespace vramlab
