#include "lab/matrix/tuner_matrix.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/statistics.hpp"
#include "lab/matrix/family_matrix.hpp"
#include "lab/scenario/result_keys.hpp"

namespace vramlab {
namespace {

constexpr std::int64_t kUsualFrequency = 10;

std::vector<Contestant> contestants(const PolicySet& known) { return contestants_of(known.tuners, known); }

std::int64_t frequency_of(const TrainingScenario& scenario) {
  for (const PolicyEntry& entry : scenario.policies) {
    const OptionEntry* option = entry.choice.options.find("adjustment_frequency");
    if (option == nullptr) continue;
    if (const auto* steps = std::get_if<std::int64_t>(&option->value)) return *steps;
  }
  return kUsualFrequency;
}

// Drives the same goals into a tuner as a scenario file does.
PolicyEntry usual_entry(const TrainingScenario& scenario, const Contestant& who) {
  const TunerEntry& tuner = scenario.known->tuners.find(who.use, {});
  OptionMap options;
  const auto set = [&](const char* key, OptionValue value) {
    const bool is_known = std::any_of(tuner.options.begin(), tuner.options.end(),
                                      [&](const Field& option) { return option.key == key; });
    if (is_known) options.set(key, std::move(value), {});
  };
  set("adjustment_frequency", frequency_of(scenario));
  set("target_vram_usage", scenario.target.usage);
  set("safety_margin", scenario.target.margin);
  set("objective", objective_name(scenario.objective));
  return {who.label, {.use = who.use, .profile = who.profile, .options = options, .where = {}}};
}

bool is_of(const TrainingScenario& scenario, const PolicyEntry& entry, const Contestant& who) {
  if (entry.choice.use != who.use) return false;
  const TunerEntry& tuner = scenario.known->tuners.find(who.use, {});
  const PolicyProfile* profile = tuner.find_profile(entry.choice.profile);
  return (profile == nullptr ? "" : profile->name) == who.profile;
}

TrainingScenario disturbed(const MatrixTask& task, std::int64_t seed, const PolicySet& known) {
  TrainingScenario scenario = with_matrix_tuners(*task.scenario, known);
  if (task.faults != nullptr) {
    scenario.setup.faults = task.faults->setup.faults;
    scenario.setup.others = task.faults->setup.others;
    const std::size_t cards = 1 + scenario.setup.more_cards.size();
    std::erase_if(scenario.setup.others, [&](const OtherProcess& other) { return other.card >= cards; });
  }
  scenario.seed = static_cast<std::uint64_t>(seed);
  scenario.setup.faults.seed = scenario.seed;
  return scenario;
}

bool is_random(const Faults& faults) {
  return (faults.outlier > 0 && faults.outlier_chance > 0) || faults.error_chance > 0 ||
         faults.missing_readings > 0;
}

double mean_or_0(const std::vector<double>& values) { return values.empty() ? 0 : mean_of(values); }

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

/// What is kept of the run of one tuner.
struct TunerRun {
  std::vector<Metric> metrics;
  bool ended_early = false;
};

// The records of every step are not looked at again.
Json runs_json(const Comparison& comparison) {
  Json list = Json::array();
  for (const PolicyResult& result : comparison.policies) {
    Json one = labelled_json({result}).front();
    one["ended_early"] = !result.run.ended_early.empty();
    list.push_back(std::move(one));
  }
  return list;
}

TunerRun run_from(const Json& list, const std::string& label) {
  const std::vector<LabelledFigures> all = labelled_from(list);
  const auto found = std::ranges::find(all, label, &LabelledFigures::label);
  if (found == all.end()) throw InternalError("a matrix without a run of " + label);
  const auto place = static_cast<std::size_t>(found - all.begin());
  return {found->metrics, list.at(place).at("ended_early").get<bool>()};
}

MatrixCell cell_of(const std::vector<TunerRun>& runs, std::int64_t iterations) {
  const auto all = [&](const char* name) {
    std::vector<double> values;
    for (const TunerRun& run : runs) {
      if (const auto value = find_metric(run.metrics, name)) values.push_back(*value);
    }
    return values;
  };
  const std::vector<double> regrets = all("regret");
  MatrixCell cell{.ooms = mean_or_0(all("ooms")),
                  .adjustments = mean_or_0(all("adjustments")),
                  .evaluations_to_settle = largest(all("evaluations_to_settle")),
                  .settled_at = largest(all("last_adjustment_iteration")) / static_cast<double>(iterations),
                  .direction_changes = largest(all("direction_changes")),
                  .disturbance_cost = mean_or_0(all("disturbance_cost")),
                  .inside_target = mean_or_0(all("inside_target"))};
  if (!regrets.empty()) {
    cell.mean_regret = mean_of(regrets);
    cell.worst_regret = largest(regrets);
  }
  cell.ended_early = std::ranges::any_of(runs, &TunerRun::ended_early);
  cell.finished = std::ranges::all_of(runs, has_finished, &TunerRun::metrics);
  return cell;
}

/// The seeds of each row: one where nothing is random.
std::vector<std::int64_t> seeds_of(const std::vector<MatrixTask>& rows, std::int64_t seeds,
                                   const PolicySet& known) {
  std::vector<std::int64_t> all;
  for (const MatrixTask& row : rows) {
    all.push_back(is_random(disturbed(row, 1, known).setup.faults) ? seeds : 1);
  }
  return all;
}

// Several may be the best of a row. Without a regret there is nothing to compare.
std::vector<bool> best_of(const MatrixRow& row) {
  std::vector<Standing> standings;
  for (const MatrixCell& cell : row.cells) {
    standings.push_back(
        {.label = {},
         .lost = cell.finished ? "" : "its run",
         .rank = training_rank(cell.ended_early, cell.ooms, cell.inside_target, cell.mean_regret.value_or(0)),
         .remark = {}});
  }
  const Standing* first = leader(standings);
  std::vector<bool> best;
  for (std::size_t i = 0; i < standings.size(); ++i) {
    best.push_back(row.cells[i].mean_regret && standings[i].lost.empty() && standings[i].rank == first->rank);
  }
  return best;
}

}  // namespace

std::vector<std::string> matrix_labels(const PolicySet& known) {
  std::vector<std::string> labels;
  for (const Contestant& who : contestants(known)) labels.push_back(who.label);
  return labels;
}

TrainingScenario with_matrix_tuners(TrainingScenario scenario, const PolicySet& known) {
  std::vector<PolicyEntry> entries;
  for (const Contestant& who : contestants(known)) {
    PolicyEntry entry = usual_entry(scenario, who);
    const auto own = std::find_if(scenario.policies.begin(), scenario.policies.end(),
                                  [&](const PolicyEntry& one) { return is_of(scenario, one, who); });
    if (own != scenario.policies.end()) entry.choice = own->choice;
    entries.push_back(std::move(entry));
  }
  scenario.policies = std::move(entries);
  return scenario;
}

std::vector<Task> tuner_matrix_tasks(const std::vector<MatrixTask>& rows, std::int64_t seeds,
                                     const PolicySet& known) {
  std::vector<Task> tasks;
  const std::vector<std::int64_t> counts = seeds_of(rows, seeds, known);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const MatrixTask& row = rows[i];
    const std::string name =
        row.faults != nullptr ? row.scenario->name + " + " + row.faults->name : row.scenario->name;
    for (std::int64_t seed = 1; seed <= counts[i]; ++seed) {
      const std::string number = std::to_string(seed);
      tasks.push_back({.name = counts[i] > 1 ? name + ", seed " + number : name,
                       .key = hash_text(text_hash("tuners\n" + row.key + '\n' + number)),
                       .length = static_cast<double>(row.scenario->setup.iterations),
                       .perform = [&row, seed, &known] {
                         return runs_json(compare_policies(disturbed(row, seed, known)));
                       }});
    }
  }
  return tasks;
}

std::vector<MatrixRow> tuner_matrix_rows(const std::vector<MatrixTask>& tasks, std::int64_t seeds,
                                         const std::vector<Json>& results, const PolicySet& known) {
  const std::vector<std::string> labels = matrix_labels(known);
  const std::vector<std::int64_t> counts = seeds_of(tasks, seeds, known);
  std::vector<MatrixRow> rows;
  for (std::size_t task = 0, result = 0; task < tasks.size(); ++task) {
    MatrixRow row{.scenario = tasks[task].scenario->name,
                  .faults = tasks[task].faults != nullptr ? tasks[task].faults->name : "",
                  .objective = objective_name(tasks[task].scenario->objective),
                  .seeds = counts[task],
                  .context_assumed = tasks[task].scenario->context_assumed,
                  .cells = {}};
    for (const std::string& label : labels) {
      std::vector<TunerRun> runs;
      for (std::int64_t seed = 0; seed < counts[task]; ++seed) {
        runs.push_back(run_from(results[result + static_cast<std::size_t>(seed)], label));
      }
      row.cells.push_back(cell_of(runs, tasks[task].scenario->setup.iterations));
    }
    result += static_cast<std::size_t>(counts[task]);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<MatrixRow> tuner_matrix(const std::vector<MatrixTask>& tasks, std::int64_t seeds,
                                    unsigned threads, const PolicySet& known) {
  return tuner_matrix_rows(tasks, seeds, perform_all(tuner_matrix_tasks(tasks, seeds, known), threads),
                           known);
}

std::vector<MatrixSummary> summarise(const std::vector<MatrixRow>& rows,
                                     const std::vector<std::string>& labels) {
  std::vector<std::vector<bool>> best;  // by row
  for (const MatrixRow& row : rows) best.push_back(best_of(row));
  std::vector<MatrixSummary> all;
  for (std::size_t who = 0; who < labels.size(); ++who) {
    MatrixSummary summary{.label = labels[who]};
    std::vector<double> regrets;
    std::vector<double> adjustments;
    for (const MatrixRow& row : rows) {
      const MatrixCell& cell = row.cells[who];
      if (cell.mean_regret) regrets.push_back(*cell.mean_regret);
      adjustments.push_back(cell.adjustments);
      summary.unfinished_rows += cell.finished ? 0 : 1;
      summary.rows_with_ooms += cell.ooms > 0 ? 1 : 0;
      summary.ooms += cell.ooms;
      summary.worst_evaluations = std::max(summary.worst_evaluations, cell.evaluations_to_settle);
      summary.worst_turns = std::max(summary.worst_turns, cell.direction_changes);
    }
    for (const auto& row : best) summary.best_rows += row[who] ? 1 : 0;
    if (!regrets.empty()) {
      summary.median_regret = median_of(regrets);
      summary.worst_regret = largest(regrets);
    }
    summary.median_adjustments = adjustments.empty() ? 0 : median_of(adjustments);
    all.push_back(std::move(summary));
  }
  return all;
}

}  // namespace vramlab
