// vramlab matrix: every tuner, composer, searcher or admitter on every scenario of its kind.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/output/tasks.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/best.hpp"
#include "lab/experiment.hpp"
#include "lab/matrix/family_matrix.hpp"
#include "lab/matrix/tuner_matrix.hpp"
#include "lab/metric.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/result_keys.hpp"
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
                                                        "draw a heat map of regret")(
      "kind", text_value("KIND"),
      "of the scenarios in folders, those of this kind: training, epoch, search or jobs (default: training)");
  add_plugin_option(options);
  add_task_options(options);
  add_output_options(options);
}

bool has_matrix(const Kind& kind) { return kind.name == "training" || has_family_matrix(kind.name); }

std::string chosen_kind(const Arguments& arguments) {
  const std::string kind = text_of(arguments, "kind");
  std::vector<std::string> names;
  for (const Kind& one : kinds()) {
    if (has_matrix(one)) names.push_back(one.name);
  }
  if (kind.empty() || std::ranges::find(names, kind) != names.end()) return kind;
  throw InputError("", "--kind \"" + kind + "\" has no matrix." + suggest_name(kind, names));
}

/// What a matrix is asked of: the scenarios of each kind, in the order of the kinds.
using DocumentsByKind = std::vector<std::pair<std::string, std::vector<ScenarioDocument>>>;

// Of a folder the scenarios of `wanted`, or else those of training; whatever else is named.
DocumentsByKind read_all(const std::vector<std::string>& paths, const std::string& wanted,
                         const std::shared_ptr<const PolicySet>& policies, Output& output) {
  DocumentsByKind all;
  for (const Kind& kind : kinds()) all.push_back({kind.name, {}});
  bool any = false;
  for (const std::string& file : scenario_files(paths)) {
    ScenarioDocument document = output.scenario(file, policies);
    const Kind& kind = kind_of(document);
    const bool is_named = std::find(paths.begin(), paths.end(), file) != paths.end();
    const bool takes = wanted.empty() ? is_named || kind.name == "training" : kind.name == wanted;
    if (is_named && !(takes && has_matrix(kind))) {
      throw InputError(file, "is of kind " + kind.name +
                                 (takes ? ", in which there are no policies to compare."
                                        : "; wanted are those of kind " + wanted + "."));
    }
    if (!takes) continue;
    any = true;
    std::ranges::find(all, kind.name, &DocumentsByKind::value_type::first)
        ->second.push_back(std::move(document));
  }
  if (!any) {
    throw InputError(paths.front(), "holds no scenario of kind " + (wanted.empty() ? "training" : wanted) +
                                        "; --kind chooses another.");
  }
  std::erase_if(all, [](const auto& one) { return one.second.empty(); });
  return all;
}

/// The rows of one kind of scenarios.
class RowsOfKind {
 public:
  virtual ~RowsOfKind() = default;
  /// Their runs; they refer to this.
  [[nodiscard]] virtual std::vector<Task> tasks() const = 0;
  /// Prints the tables of what the tasks came to. Returns the heat map, and puts the rows into `json`.
  virtual HeatMap show(const std::vector<Json>& results, Output& output, Json& json) const = 0;
};

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

/// The matrix of tuners: what is run, and what is shown of it.
class TunerRows : public RowsOfKind {
 public:
  TunerRows(const Arguments& arguments, const std::vector<ScenarioDocument>& scenarios,
            std::shared_ptr<const PolicySet> policies, Output& output)
      : policies_(std::move(policies)), seeds_(arguments["seeds"].as<std::int64_t>()) {
    ResultKeys keys{VRAMLAB_VERSION};
    const auto read = [&](const std::vector<ScenarioDocument>& documents) {
      std::vector<Keyed> all;
      for (const ScenarioDocument& document : documents) {
        all.push_back({read_training(document), keys.of(document, {"matrix"})});
      }
      return all;
    };
    scenarios_ = read(scenarios);
    if (arguments.count("faults") > 0) {
      faults_ = read(read_all(texts_of(arguments, "faults"), "training", policies_, output).front().second);
    }
    for (const Keyed& one : scenarios_) {
      rows_.push_back({&one.scenario, nullptr, one.key});
      for (const Keyed& fault : faults_)
        rows_.push_back({&one.scenario, &fault.scenario, one.key + fault.key});
    }
  }

  [[nodiscard]] std::vector<Task> tasks() const override {
    return tuner_matrix_tasks(rows_, seeds_, *policies_);
  }

  HeatMap show(const std::vector<Json>& results, Output& output, Json& json) const override {
    const auto rows = tuner_matrix_rows(rows_, seeds_, results, *policies_);
    const std::vector<std::string> labels = matrix_labels(*policies_);
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
    json.update(matrix_json(rows, labels));
    return heat_map(rows, labels);
  }

 private:
  struct Keyed {
    TrainingScenario scenario;
    std::string key;
  };

  std::shared_ptr<const PolicySet> policies_;
  std::int64_t seeds_;
  std::vector<Keyed> scenarios_;
  std::vector<Keyed> faults_;
  std::vector<MatrixTask> rows_;
};

// What a kind calls the policies of its matrix.
std::string family_name(const FamilyMatrix& matrix) {
  return matrix.kind == "epoch" ? "composer" : matrix.kind == "search" ? "searcher" : "admitter";
}

BestRule family_rule(const FamilyMatrix& matrix) {
  const std::string first = matrix.ooms_count_first ? "fewest rows with OOM, then " : "";
  return {"Best of those that finished every row: " + first +
              "least short of the best of each row on the median, then fewest OOMs.",
          "No " + family_name(matrix) + " finished every row"};
}

Table family_summary_table(const FamilyMatrix& matrix, const std::vector<FamilySummary>& summaries) {
  Table table{{left(family_name(matrix)), "median short", "worst short", "unfinished", "rows with OOM",
               "OOMs", "best"}};
  for (const FamilySummary& one : summaries) {
    table.add_row({one.label, percent(one.median_short), percent(one.worst_short),
                   std::to_string(one.unfinished_rows), std::to_string(one.rows_with_ooms),
                   fmt::format("{:.4g}", one.ooms), std::to_string(one.best_rows)});
  }
  return table;
}

// The figure, how many failed behind it, and whether something was left undone.
std::string family_cell_text(const FamilyMatrix& matrix, const FamilyCell& cell) {
  std::string text = std::isnan(cell.value) ? kNoFigure : fixed_text(cell.value, matrix.is_count ? 0 : 1);
  if (cell.ooms > 0) text += fmt::format(" ({:.0f})", cell.ooms);
  if (!cell.lost.empty()) text += " unfinished";
  return text + (cell.is_best ? " *" : "");
}

Table family_table(const FamilyMatrix& matrix) {
  std::vector<Table::Column> columns{left(matrix.title + " on")};
  for (const std::string& label : matrix.labels) columns.push_back({label});
  Table table{std::move(columns)};
  for (const FamilyRow& row : matrix.rows) {
    std::vector<std::string> cells{row.scenario};
    for (const FamilyCell& cell : row.cells) cells.push_back(family_cell_text(matrix, cell));
    table.add_row(std::move(cells));
  }
  return table;
}

Json family_json(const FamilyMatrix& matrix) {
  Json json{{"metric", matrix.metric}, {"rows", Json::array()}};
  for (const FamilyRow& row : matrix.rows) {
    Json one{{"scenario", row.scenario}, {"context_assumed", row.context_assumed}};
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const FamilyCell& cell = row.cells[i];
      one["policies"][matrix.labels[i]] = {
          {"value", number_json(cell.value)},
          {"short_of_best", cell.short_of_best ? number_json(*cell.short_of_best) : Json(nullptr)},
          {"ooms", number_json(cell.ooms)},
          {"finished", cell.lost.empty()},
          {"lost", cell.lost.empty() ? Json(nullptr) : Json(cell.lost)},
          {"best", cell.is_best}};
    }
    json["rows"].push_back(std::move(one));
  }
  return json;
}

HeatMap family_heat_map(const FamilyMatrix& matrix) {
  constexpr double kHot = 0.5;
  HeatMap map{.title = fmt::format("{} of every {}", matrix.title, family_name(matrix)),
              .legend =
                  "The redder, the shorter of the best of the row; red from 50 % on, or where something was "
                  "left undone. Framed: memory ran out, how often in brackets. * best of its row.",
              .columns = matrix.labels,
              .rows = {},
              .cells = {}};
  for (const FamilyRow& row : matrix.rows) {
    map.rows.push_back(row.scenario);
    std::vector<HeatCell> cells;
    for (const FamilyCell& cell : row.cells) {
      const double heat = cell.lost.empty() ? cell.short_of_best.value_or(0) / kHot : 1;
      cells.push_back({heat, family_cell_text(matrix, cell), cell.ooms > 0});
    }
    map.cells.push_back(std::move(cells));
  }
  return map;
}

/// The same of the policies of another family.
class FamilyRows : public RowsOfKind {
 public:
  FamilyRows(const Arguments& arguments, const std::string& kind,
             const std::vector<ScenarioDocument>& scenarios, std::shared_ptr<const PolicySet> policies)
      : kind_(kind), scenarios_(scenarios), policies_(std::move(policies)) {
    for (const char* option : {"faults", "seeds"}) {
      if (arguments.count(option) == 0 || arguments[option].defaulted()) continue;
      throw InputError("", std::string("--") + option +
                               " is for tuners: name scenarios of kind training, not " + kind + ".");
    }
  }

  [[nodiscard]] std::vector<Task> tasks() const override {
    ResultKeys keys{VRAMLAB_VERSION};
    std::vector<std::string> all;
    for (const ScenarioDocument& scenario : scenarios_) all.push_back(keys.of(scenario, {"matrix"}));
    return family_matrix_tasks(kind_, scenarios_, all, *policies_);
  }

  HeatMap show(const std::vector<Json>& results, Output& output, Json& json) const override {
    const FamilyMatrix matrix = family_matrix_of(kind_, results, *policies_);
    const auto summaries = summarise(matrix);
    const auto standings = standings_of(matrix, summaries);
    output.line(verdict_of(standings, family_rule(matrix)));
    output.line(family_rule(matrix).head);
    output.next_table(family_summary_table(matrix, summaries));
    output.next_table(family_table(matrix));
    output.line("* best of its row, by the rule of kind {}; in brackets how often memory ran out.", kind_);
    std::string assumed;
    for (const FamilyRow& row : matrix.rows) {
      if (row.context_assumed) assumed += (assumed.empty() ? "" : ", ") + row.scenario;
    }
    if (!assumed.empty()) output.line("\nContext assumed, not measured on the card: {}.", assumed);
    json["kinds"][kind_] = family_json(matrix);
    const Standing* first = leader(standings);
    json["kinds"][kind_]["best"] = first->lost.empty() ? Json(first->label) : Json(nullptr);
    json["kinds"][kind_]["rule"] = family_rule(matrix).head;
    return family_heat_map(matrix);
  }

 private:
  std::string kind_;
  const std::vector<ScenarioDocument>& scenarios_;
  std::shared_ptr<const PolicySet> policies_;
};

using AllRows = std::vector<std::unique_ptr<RowsOfKind>>;

// The runs of all kinds are one list of tasks.
std::vector<Task> tasks_of(const AllRows& kinds) {
  std::vector<Task> all;
  for (const auto& kind : kinds) std::ranges::move(kind->tasks(), std::back_inserter(all));
  return all;
}

// Returns the heat map of the last.
HeatMap show(const AllRows& kinds, const std::vector<Json>& results, Output& output, Json& json) {
  HeatMap map;
  auto next = results.begin();
  for (const auto& kind : kinds) {
    if (kind != kinds.front()) output.line("");
    const auto end = next + std::ssize(kind->tasks());
    map = kind->show({next, end}, output, json);
    next = end;
  }
  return map;
}

int run_matrix(const Arguments& arguments, Output& output) {
  const std::string picture = text_of(arguments, "picture");
  require_output_names(operands(arguments),
                       {text_of(arguments, "json"), picture, text_of(arguments, "results")});
  if (!picture.empty() && fs::path(picture).extension() != ".svg") {
    throw InputError(picture, "a heat map's name must end in .svg.");
  }
  const std::int64_t seeds = arguments["seeds"].as<std::int64_t>();
  if (seeds < 1 || seeds > 1000) throw InputError("", "--seeds must be from 1 to 1000.");
  const auto policies = chosen_policies(arguments, output);
  const DocumentsByKind all = read_all(operands(arguments), chosen_kind(arguments), policies, output);
  if (!picture.empty() && all.size() > 1) {
    throw InputError(picture, "a heat map is of one kind of scenarios; choose it with --kind.");
  }
  AllRows kinds;
  for (const auto& [kind, scenarios] : all) {
    if (kind == "training") {
      kinds.push_back(std::make_unique<TunerRows>(arguments, scenarios, policies, output));
    } else {
      kinds.push_back(std::make_unique<FamilyRows>(arguments, kind, scenarios, policies));
    }
  }
  const TaskResults done = perform_tasks(tasks_of(kinds), "runs", arguments, output);
  if (done.all().empty()) return done.shows ? kStoppedByUser : kDone;
  Json json = Json::object();
  const HeatMap map = show(kinds, done.all(), output, json);
  if (!picture.empty()) {
    draw_heat_map(map, picture);
    output.wrote(picture);
  }
  output.json(json);
  return kDone;
}

}  // namespace

Verb matrix_verb() {
  return {.name = "matrix",
          .summary = "every policy of a family on every scenario of its kind: what each lost",
          .operands = "SCENARIO...",
          .count = {1, 1000},
          .example = "vramlab matrix scenarios --picture matrix.svg",
          .add_options = add_matrix_options,
          .run = run_matrix,
          .has_tasks = true};
}

}  // namespace vramlab
