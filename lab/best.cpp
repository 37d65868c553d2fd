#include "lab/best.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

namespace vramlab {
namespace {

constexpr const char* kOracle = "oracle";

bool is_better(Better way, double a, double b) { return way == Better::less ? a < b : a > b; }

// Ranks as they compare: what is not there comes last.
std::vector<double> order_of(const Standing& standing) {
  std::vector<double> order{standing.lost.empty() ? 0.0 : 1.0};
  for (const double figure : standing.rank) order.push_back(std::isnan(figure) ? HUGE_VAL : figure);
  return order;
}

const Standing* find_standing(const std::vector<Standing>& standings, const std::string& label) {
  const auto found = std::ranges::find(standings, label, &Standing::label);
  return found == standings.end() ? nullptr : &*found;
}

// The figures that can be compared, without the oracle's.
std::set<double> chosen_from(const std::vector<LabelledFigures>& results, const std::string& name) {
  std::set<double> values;
  for (const LabelledFigures& result : results) {
    const double value = Figures{result.metrics}[name];
    if (result.label != kOracle && !std::isnan(value)) values.insert(value);
  }
  return values;
}

}  // namespace

bool has_finished(const std::vector<Metric>& metrics) {
  return find_metric(metrics, "finished").value_or(0) >= 1;
}

const Standing* leader(const std::vector<Standing>& standings) {
  const auto found = std::ranges::min_element(standings, {}, order_of);
  return found == standings.end() ? nullptr : &*found;
}

std::string verdict_of(const std::vector<Standing>& standings, const BestRule& rule) {
  const Standing* first = leader(standings);
  if (first == nullptr) return rule.none + ".";
  if (first->lost.empty()) return fmt::format("Best: {}{}.", first->label, first->remark);
  return fmt::format("{}. Least bad: {}, {}{}.", rule.none, first->label, first->lost, first->remark);
}

bool loses_any(const std::vector<Standing>& standings) {
  return std::ranges::any_of(standings, [](const Standing& one) { return !one.lost.empty(); });
}

std::string lost_by(const std::vector<Standing>& standings, const std::string& label) {
  const Standing* standing = find_standing(standings, label);
  return standing == nullptr || standing->lost.empty() ? kNoFigure : standing->lost;
}

std::vector<std::size_t> best_in(const std::vector<LabelledFigures>& results,
                                 const MetricDescription& metric) {
  std::vector<std::size_t> best;
  if (metric.better == Better::neither) return best;
  double top = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double value = Figures{results[i].metrics}[metric.name];
    if (results[i].label == kOracle || std::isnan(value) || !has_finished(results[i].metrics)) continue;
    if (best.empty() || is_better(metric.better, value, top)) {
      best.clear();
      top = value;
    }
    if (value == top) best.push_back(i);
  }
  return best;
}

void put_standings(Json& json, const std::string& rows, const std::vector<Standing>& standings,
                   const BestRule& rule) {
  const Standing* first = leader(standings);
  const bool finished = first != nullptr && first->lost.empty();
  json["best"] = finished ? Json(first->label) : Json(nullptr);
  json["rule"] = rule.head;
  for (Json& policy : json[rows]) {
    const Standing* standing = find_standing(standings, policy["label"].get<std::string>());
    if (standing == nullptr) continue;
    policy["finished"] = standing->lost.empty();
    policy["lost"] = standing->lost.empty() ? Json(nullptr) : Json(standing->lost);
  }
}

void put_stars(Json& json, const std::string& rows, const std::vector<LabelledFigures>& results,
               const MetricTable& metrics) {
  for (Json& row : json[rows]) row["best_in"] = Json::array();
  for (const MetricDescription& metric : metrics) {
    if (chosen_from(results, metric.name).size() < 2) continue;
    for (const std::size_t i : best_in(results, metric)) json[rows][i]["best_in"].push_back(metric.name);
  }
}

}  // namespace vramlab
