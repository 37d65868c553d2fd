#include <algorithm>

#include "lab/metric_table.hpp"
#include "lab/report_sections.hpp"
#include "lab/result_json.hpp"
#include "lab/run_curves.hpp"
#include "report/html_page.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostPoints = 4000;   // some two a pixel of a wide screen
constexpr std::size_t kMostReasons = 5000;  // of one policy; the marks of all changes stay

std::int64_t plain(Bytes bytes) { return static_cast<std::int64_t>(bytes); }

Json curves_json(const TrainingRun& run, std::size_t parameters, std::size_t stride) {
  const auto curve = [&](const auto& value) {
    return curve_json(thinned_curve(run.iterations.size(), stride, [&](std::size_t i) {
      return CurvePoint{run.iterations[i].iteration, value(run.iterations[i])};
    }));
  };
  Json json;
  json["stride"] = stride;
  json["allocated"] = curve([](const IterationRecord& step) { return plain(step.step_peak_allocated); });
  json["reserved"] = curve([](const IterationRecord& step) { return plain(step.step_peak_reserved); });
  json["limit"] = curve([](const IterationRecord& step) { return plain(step.memory.total); });
  json["points"] = Json::array();
  for (std::size_t i = 0; i < parameters; ++i) {
    json["points"].push_back(curve([i](const IterationRecord& step) { return step.point[i]; }));
  }
  return json;
}

Json ooms_json(const TrainingRun& run) {
  Json list = Json::array();
  for (const IterationRecord& step : run.iterations) {
    if (step.result == StepResult::oom) list.push_back(step.iteration);
  }
  return list;
}

Json retries_json(const TrainingRun& run) {
  Json list = Json::array();
  std::uint64_t before = 0;
  for (const IterationRecord& step : run.iterations) {
    const std::uint64_t now = step.memory.alloc_retries;
    if (now > before) list.push_back({step.iteration, now - before});
    before = now;
  }
  return list;
}

Json changes_json(const TrainingRun& run) {
  Json list = Json::array();
  for (const Adjustment& change : run.adjustments) {
    Json entry{change.iteration, change.from, change.to};
    if (list.size() < kMostReasons) entry.push_back(change.reason);
    list.push_back(std::move(entry));
  }
  return list;
}

Json policy_json(const PolicyResult& result, std::size_t parameters) {
  Json json = curves_json(result.run, parameters, curve_stride(result.run.iterations.size(), kMostPoints));
  json["label"] = result.label;
  json["reference"] = result.policy == "oracle";
  json["final"] = result.run.final_point;
  if (!result.run.ended_early.empty()) json["ended_early"] = result.run.ended_early;
  json["metrics"] = figures_json(result.metrics);
  json["ooms"] = ooms_json(result.run);
  json["retries"] = retries_json(result.run);
  json["changes"] = changes_json(result.run);
  return json;
}

}  // namespace

Json training_section(const Scenario& scenario, const Comparison& comparison, const SectionHead& head) {
  const Target& target = scenario.target;
  Json json;
  json["kind"] = "training";
  json["title"] = scenario.name;
  json["verdict"] = head.verdict;
  json["head"] = head.head;
  json["description"] = scenario.description;
  json["iterations"] = scenario.setup.iterations;
  json["band"] = {target.usage - target.margin, target.usage + target.margin};
  json["metrics"] = metrics_json("training");
  json["parameters"] = Json::array();
  for (const Parameter& parameter : scenario.setup.bounds.parameters)
    json["parameters"].push_back(parameter.name);
  Bytes total = 0;
  json["policies"] = Json::array();
  for (const PolicyResult& result : comparison.policies) {
    json["policies"].push_back(policy_json(result, scenario.setup.bounds.size()));
    if (!result.run.iterations.empty()) total = std::max(total, result.run.iterations.back().memory.total);
  }
  json["total"] = total;
  return json;
}

Json curve_json(const std::vector<CurvePoint>& curve) {
  Json list = Json::array();
  for (const CurvePoint& point : curve) list.push_back({point.x, point.value});
  return list;
}

Json metrics_json(std::string_view kind) {
  Json list = Json::array();
  for (const MetricDescription& metric : metrics_of(kind)) {
    std::string about = metric.about;
    std::erase(about, '`');
    list.push_back({{"name", metric.name},
                    {"title", metric.title},
                    {"unit", metric.unit},
                    {"better", better_name(metric.better)},
                    {"about", about}});
  }
  return list;
}

std::string report_page(const std::string& title, const Json& sections, std::string_view version) {
  Json json;
  json["title"] = title;
  json["sections"] = sections;
  return html_page(title, json.dump(-1, ' ', false, Json::error_handler_t::replace), version);
}

}  // namespace vramlab
