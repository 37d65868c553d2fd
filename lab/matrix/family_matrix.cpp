#include "lab/matrix/family_matrix.hpp"

#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/statistics.hpp"
#include "lab/experiment.hpp"
#include "lab/scenario/result_keys.hpp"

namespace vramlab {
namespace {

/// What a matrix shows of a kind, beside what its sweeps show first.
struct FamilyOfKind {
  std::string_view kind;
  const char* ooms;  ///< the metric that counts failures for lack of memory
  bool ooms_count_first;
  std::vector<Contestant> (*contestants)(const PolicySet& known);
};

constexpr std::array kFamilies{
    FamilyOfKind{"epoch", "ooms", true,
                 [](const PolicySet& known) { return contestants_of(known.composers, known); }},
    FamilyOfKind{
        "search", "probe_ooms", false,
        [](const PolicySet& known) { return contestants_of(known.searchers, known, /*names_both=*/true); }},
    FamilyOfKind{"jobs", "oom_kills", true,
                 [](const PolicySet& known) { return contestants_of(known.admitters, known); }}};

const FamilyOfKind* family_of(std::string_view kind) {
  const auto found = std::ranges::find(kFamilies, kind, &FamilyOfKind::kind);
  return found == kFamilies.end() ? nullptr : &*found;
}

const FamilyOfKind& required_family(std::string_view kind) {
  const FamilyOfKind* family = family_of(kind);
  if (family == nullptr) throw InternalError("a matrix of a kind that has none");
  return *family;
}

// What a cell shows: what sweeps of that kind show first.
const MetricDescription& shown_metric_of(std::string_view kind) {
  return *std::ranges::find(find_kind(kind).metrics(), find_kind(kind).sweep_metric,
                            &MetricDescription::name);
}

std::string default_profile_of(const PolicySet& known, const std::string& name) {
  std::string profile;
  known.for_each([&](const auto& entry) {
    if (entry.name == name) profile = entry.default_profile;
  });
  return profile;
}

// As the scenario has it, if it does; what stands beside it there (a tuner) is no part of the policy.
Json entry_of(const Json& policies, const Contestant& who, const PolicySet& known) {
  Json entry;
  const auto is_it = [&](const Json& one) {
    return one.is_object() && one.value("use", "") == who.use && !one.contains("tuner") &&
           one.value("profile", default_profile_of(known, who.use)) == who.profile;
  };
  const auto own = std::find_if(policies.begin(), policies.end(), is_it);
  if (own != policies.end()) entry = *own;
  entry["use"] = who.use;
  if (!who.profile.empty()) entry["profile"] = who.profile;
  entry["label"] = who.label;
  return entry;
}

ScenarioDocument with_family(ScenarioDocument document, const std::vector<Contestant>& contestants,
                             const PolicySet& known) {
  read_experiment(document);  // its own faults are told by its own names
  const Json own = document.json.value("policies", Json::array());
  Json policies = Json::array();
  for (const Contestant& who : contestants) policies.push_back(entry_of(own, who, known));
  document.json["policies"] = std::move(policies);
  document.json.erase("expect");
  document.json.erase("sweep");
  return document;
}

// Behind the best that finished; 0 for that one. Empty where there is nothing to compare.
std::optional<double> behind(double value, std::optional<double> best, Better better) {
  if (!best || std::isnan(value) || *best == 0) return std::nullopt;
  return (better == Better::less ? value - *best : *best - value) / *best;
}

FamilyRow row_of(const Experiment& run, const FamilyOfKind& family, const std::string& metric,
                 Better better) {
  const std::vector<Standing> standings = run.standings();
  const std::vector<LabelledFigures> figures = run.figures();
  FamilyRow row{
      .scenario = run.scenario().name, .context_assumed = run.scenario().context_assumed, .cells = {}};
  std::optional<double> best;
  const Standing* first = leader(standings);
  for (std::size_t i = 0; i < standings.size(); ++i) {
    const Figures of{figures[i].metrics};
    FamilyCell cell{.value = of[metric], .ooms = of[family.ooms], .lost = standings[i].lost};
    cell.is_best = cell.lost.empty() && standings[i].rank == first->rank;
    const bool counts = cell.lost.empty() && !std::isnan(cell.value);
    if (counts && (!best || (better == Better::less ? cell.value < *best : cell.value > *best))) {
      best = cell.value;
    }
    row.cells.push_back(std::move(cell));
  }
  for (FamilyCell& cell : row.cells) {
    if (cell.lost.empty()) cell.short_of_best = behind(cell.value, best, better);
  }
  return row;
}

// What a task comes to, and the way back.
Json row_json(const FamilyRow& row) {
  Json json{{"scenario", row.scenario}, {"context_assumed", row.context_assumed}, {"cells", Json::array()}};
  for (const FamilyCell& cell : row.cells) {
    json["cells"].push_back(
        {{"value", number_json(cell.value)},
         {"short_of_best", cell.short_of_best ? Json(*cell.short_of_best) : Json(nullptr)},
         {"ooms", number_json(cell.ooms)},
         {"lost", cell.lost},
         {"is_best", cell.is_best}});
  }
  return json;
}

FamilyRow row_from(const Json& json) {
  const auto number = [](const Json& value) { return value.is_null() ? std::nan("") : value.get<double>(); };
  FamilyRow row{.scenario = json.at("scenario").get<std::string>(),
                .context_assumed = json.at("context_assumed").get<bool>(),
                .cells = {}};
  for (const Json& cell : json.at("cells")) {
    row.cells.push_back({.value = number(cell.at("value")),
                         .ooms = number(cell.at("ooms")),
                         .lost = cell.at("lost").get<std::string>(),
                         .is_best = cell.at("is_best").get<bool>()});
    if (!cell.at("short_of_best").is_null()) {
      row.cells.back().short_of_best = cell.at("short_of_best").get<double>();
    }
  }
  return row;
}

}  // namespace

bool has_family_matrix(std::string_view kind) { return family_of(kind) != nullptr; }

std::vector<Task> family_matrix_tasks(const std::string& kind, const std::vector<ScenarioDocument>& scenarios,
                                      const std::vector<std::string>& keys, const PolicySet& known) {
  const FamilyOfKind& family = required_family(kind);
  const std::vector<Contestant> contestants = family.contestants(known);
  const MetricDescription& metric = shown_metric_of(kind);
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    tasks.push_back({.name = scenarios[i].file,
                     .key = keys.empty() ? std::string{} : hash_text(text_hash("family\n" + keys[i])),
                     .length = length_of(scenarios[i]),
                     .perform = [&family, &scenario = scenarios[i], contestants, &metric, &known] {
                       const auto run = read_experiment(with_family(scenario, contestants, known));
                       run->leave_out_oracle();
                       run->run({});
                       return row_json(row_of(*run, family, metric.name, metric.better));
                     }});
  }
  return tasks;
}

FamilyMatrix family_matrix_of(const std::string& kind, const std::vector<Json>& results,
                              const PolicySet& known) {
  const FamilyOfKind& family = required_family(kind);
  const MetricDescription& metric = shown_metric_of(kind);
  FamilyMatrix matrix{.kind = kind,
                      .metric = metric.name,
                      .title = metric.title,
                      .is_count = metric.unit == "count",
                      .ooms_count_first = family.ooms_count_first,
                      .labels = all_labels(family.contestants(known)),
                      .rows = {}};
  for (const Json& result : results) matrix.rows.push_back(row_from(result));
  return matrix;
}

FamilyMatrix family_matrix(const std::string& kind, const std::vector<ScenarioDocument>& scenarios,
                           unsigned threads, const PolicySet& known) {
  return family_matrix_of(kind, perform_all(family_matrix_tasks(kind, scenarios, {}, known), threads), known);
}

std::vector<FamilySummary> summarise(const FamilyMatrix& matrix) {
  std::vector<FamilySummary> all;
  for (std::size_t who = 0; who < matrix.labels.size(); ++who) {
    FamilySummary summary{.label = matrix.labels[who]};
    std::vector<double> shorts;
    for (const FamilyRow& row : matrix.rows) {
      const FamilyCell& cell = row.cells[who];
      if (cell.short_of_best) shorts.push_back(*cell.short_of_best);
      summary.unfinished_rows += cell.lost.empty() ? 0 : 1;
      summary.rows_with_ooms += cell.ooms > 0 ? 1 : 0;
      summary.ooms += std::isnan(cell.ooms) ? 0 : cell.ooms;
      summary.best_rows += cell.is_best ? 1 : 0;
    }
    if (!shorts.empty()) {
      summary.median_short = median_of(shorts);
      summary.worst_short = *std::ranges::max_element(shorts);
    }
    all.push_back(std::move(summary));
  }
  return all;
}

std::vector<Standing> standings_of(const FamilyMatrix& matrix, const std::vector<FamilySummary>& summaries) {
  std::vector<Standing> standings;
  for (const FamilySummary& one : summaries) {
    const auto count = [](std::int64_t number) { return static_cast<double>(number); };
    standings.push_back(
        {.label = one.label,
         .lost = one.unfinished_rows == 0 ? "" : fmt::format("which did not finish {}", one.unfinished_rows),
         .rank = {count(one.unfinished_rows), matrix.ooms_count_first ? count(one.rows_with_ooms) : 0,
                  one.median_short.value_or(0), one.ooms},
         .remark = fmt::format(", with OOM in {} of {} rows", one.rows_with_ooms, matrix.rows.size())});
    if (one.median_short) {
      standings.back().remark += fmt::format(" and {:.1f} % short of the best on the median",
                                             std::round(1000 * *one.median_short) / 10 + 0.0);
    }
  }
  return standings;
}

}  // namespace vramlab
