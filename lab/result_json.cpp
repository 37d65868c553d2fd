#include "lab/result_json.hpp"

#include <cmath>

namespace vramlab {
namespace {

Json point_json(const Point& point, const ParameterSpace& space) {
  Json json = Json::object();
  for (std::size_t i = 0; i < point.size(); ++i) json[space.parameters[i].name] = point[i];
  return json;
}

Json adjustments_json(const std::vector<Adjustment>& adjustments, const ParameterSpace& space) {
  Json list = Json::array();
  for (const Adjustment& adjustment : adjustments) {
    Json entry;
    entry["iteration"] = adjustment.iteration;
    entry["time_s"] = to_seconds(adjustment.time);
    entry["from"] = point_json(adjustment.from, space);
    entry["to"] = point_json(adjustment.to, space);
    entry["reason"] = adjustment.reason;
    list.push_back(std::move(entry));
  }
  return list;
}

Json policy_json(const PolicyResult& result, const ParameterSpace& space, const std::string& trace_file) {
  Json json;
  json["policy"] = result.policy;
  if (!result.profile.empty()) json["profile"] = result.profile;
  json["label"] = result.label;
  json["metrics"] = figures_json(result.metrics);
  json["final"] = point_json(result.run.final_point, space);
  json["time_s"] = to_seconds(result.run.duration);
  if (!result.run.ended_early.empty()) json["ended_early"] = result.run.ended_early;
  json["adjustments"] = adjustments_json(result.run.adjustments, space);
  json["statistics"] = Json::object();
  for (const Statistic& statistic : result.run.statistics) {
    json["statistics"][statistic.name] = number_json(statistic.value);
  }
  json["trace_file"] = trace_file.empty() ? Json(nullptr) : Json(trace_file);
  return json;
}

}  // namespace

Json number_json(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::isnan(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < kExact) return static_cast<std::int64_t>(value);
  return value;
}

Json figures_json(const std::vector<Metric>& figures) {
  Json json = Json::object();
  for (const Metric& figure : figures) json[figure.name] = number_json(figure.value);
  return json;
}

Json comparison_json(const Scenario& scenario, const Comparison& comparison,
                     const std::map<std::string, std::string>& trace_files) {
  Json json;
  json["scenario"] = scenario.name;
  json["seed"] = scenario.seed;
  json["objective"] = objective_name(scenario.objective);
  json["target"] = {{"usage", scenario.target.usage}, {"margin", scenario.target.margin}};
  json["policies"] = Json::array();
  for (const PolicyResult& result : comparison.policies) {
    const auto trace = trace_files.find(result.label);
    json["policies"].push_back(policy_json(result, scenario.setup.bounds,
                                           trace == trace_files.end() ? std::string{} : trace->second));
  }
  return json;
}

Json expectations_json(const std::string& file, const std::vector<CheckedExpectation>& checked) {
  Json json;
  json["file"] = file;
  json["expectations"] = Json::array();
  for (const CheckedExpectation& one : checked) {
    Json entry;
    entry["policy"] = one.policy;
    entry["metric"] = one.metric;
    entry["value"] = number_json(one.value);
    entry["bound"] = one.bound;
    entry["ok"] = one.ok;
    if (!one.around.empty()) entry["around"] = one.around;
    json["expectations"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace vramlab
