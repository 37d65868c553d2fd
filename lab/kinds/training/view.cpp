#include "lab/kinds/training/view.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "lab/metric.hpp"
#include "lab/page/sections.hpp"
#include "lab/page/thinning.hpp"
#include "report/html_page.hpp"

namespace vramlab {
namespace {

enum class Safety : std::uint8_t { ended_early, out_of_memory, above_target, inside_target };

double metric(const PolicyResult& result, const char* name) {
  return find_metric(result.metrics, name).value_or(0);
}

// When a policy should have settled.
bool stays_inside(const TrainingScenario& scenario, const std::vector<IterationRecord>& steps) {
  const auto quarter = static_cast<std::ptrdiff_t>((steps.size() + 3) / 4);
  return std::all_of(steps.end() - quarter, steps.end(), [&](const IterationRecord& step) {
    return within_target(scenario.target, step.step_peak_allocated, step.memory.total);
  });
}

Safety safety_of(const TrainingScenario& scenario, const PolicyResult& result) {
  if (!result.run.ended_early.empty()) return Safety::ended_early;
  if (metric(result, "ooms") > 0) return Safety::out_of_memory;
  return stays_inside(scenario, result.run.iterations) ? Safety::inside_target : Safety::above_target;
}

const PolicyResult& best_policy(const TrainingScenario& scenario, const Comparison& comparison) {
  const auto rank = [&](const PolicyResult& result) {
    return std::pair{safety_of(scenario, result), metric(result, "objective")};
  };
  const PolicyResult* best = nullptr;
  for (const PolicyResult& result : comparison.policies) {
    if (result.policy != "oracle" && (best == nullptr || rank(result) > rank(*best))) best = &result;
  }
  return *best;
}

std::string reservation(Safety safety, const PolicyResult& best) {
  switch (safety) {
    case Safety::inside_target:
      return "";
    case Safety::above_target:
      return ", though it stays above the target (no policy without OOM stays inside)";
    case Safety::out_of_memory:
      return fmt::format(", though {:.0f} of its steps ran out of memory (none ran without)",
                         metric(best, "ooms"));
    case Safety::ended_early:
      return ", though its run ended early (so did all others)";
  }
  return "";
}

}  // namespace

std::string verdict(const TrainingScenario& scenario, const Comparison& comparison) {
  const PolicyResult& best = best_policy(scenario, comparison);
  const std::string text =
      fmt::format("Best: {}{}", best.label, reservation(safety_of(scenario, best), best));
  const PolicyResult* oracle = comparison.find("oracle");
  if (oracle == nullptr) return text + ". No safe fixed choice was found, so there is no regret.";
  const double regret = metric(best, "regret");
  return text + fmt::format(", {:.1f} % {} the best safe fixed choice ({}).", 100 * std::abs(regret),
                            regret < 0 ? "above" : "short of", fmt::join(oracle->run.final_point, ", "));
}

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

Json comparison_json(const TrainingScenario& scenario, const Comparison& comparison,
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

namespace {

constexpr std::size_t kMostPoints = 4000;  // some two a pixel of a wide screen

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
  std::vector<RunMark> marks;
  for (const IterationRecord& step : run.iterations) {
    if (step.result == StepResult::oom) marks.push_back({step.iteration, step.iteration, 1});
  }
  return marks_json(marks);
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

Json training_section(const TrainingScenario& scenario, const Comparison& comparison,
                      const SectionHead& head) {
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

Json mark_json(const RunMark& mark) { return {mark.first, mark.last, mark.count}; }

Json marks_json(const std::vector<RunMark>& marks) {
  Json list = Json::array();
  for (const RunMark& mark : merged_marks(marks, kMostMarks)) list.push_back(mark_json(mark));
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
