#include "lab/page/sections.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "lab/experiment.hpp"
#include "lab/page/drawing.hpp"
#include "report/html_page.hpp"

namespace vramlab {

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

Json metrics_json(const MetricTable& metrics) {
  Json list = Json::array();
  for (const MetricDescription& metric : metrics) {
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
  const Json json{{"title", title}, {"sections", sections}};
  return html_page(title, json.dump(-1, ' ', false, Json::error_handler_t::replace), version);
}

Json begun_section(const std::string& kind, const std::string& title, const SectionHead& head) {
  return {{"kind", kind}, {"title", title}, {"verdict", head.verdict}, {"head", head.head}};
}

Json segments_section(const SegmentMap& map, const std::string& title, const SectionHead& head) {
  Json json = begun_section("segments", title, head);
  json["unit"] = "entry";
  json["units"] = "entries";
  json["entries"] = map.entries;
  json["stride"] = map.stride;
  json["rows"] = map.rows;
  json["row_bytes"] = map.row_bytes;
  json["ranges"] = Json::array();
  // Addresses are text: a number of JavaScript has 53 bits.
  for (const SegmentMap::Range& range : map.ranges)
    json["ranges"].push_back({range.row, fmt::format("{}", range.address)});
  json["cells"] = Json::array();
  for (const SegmentCell& cell : map.cells)
    json["cells"].push_back({cell.from, cell.to, cell.first, cell.last, cell.state});
  json["live"] = curve_json(map.live);
  json["reserved"] = curve_json(map.reserved);
  json["marks"] = Json::array();
  for (const SegmentMap::Mark& mark : map.marks) json["marks"].push_back({mark.entry, mark.text});
  return json;
}

namespace {

// What the page's table shows beside the metric chosen.
constexpr std::array kColumns{"ooms",        "regret",    "mean_peak_ratio", "peak_reserved_ratio",
                              "adjustments", "completed", "mean_wait_s",     "mean_completion_s",
                              "oom_kills",   "makespan_s"};

std::vector<std::string> policies_of(const SweepResults& results) {
  std::vector<std::string> labels;
  for (const auto& run : results) {
    if (!run) continue;
    for (const std::string& label : all_labels(*run)) {
      if (std::ranges::find(labels, label) == labels.end()) labels.push_back(label);
    }
  }
  return labels;
}

Json values_json(const std::vector<LabelledFigures>& run, const std::string& policy,
                 const std::vector<MetricDescription>& metrics) {
  const auto found = std::ranges::find(run, policy, &LabelledFigures::label);
  if (found == run.end()) return nullptr;
  Json values = Json::array();
  const Figures figures{found->metrics};
  for (const MetricDescription& metric : metrics) values.push_back(number_json(figures[metric.name]));
  return values;
}

}  // namespace

Json sweep_section(const Sweep& sweep, const SweepResults& results, const SweepTitle& title,
                   const SectionHead& head) {
  const MetricTable& metrics = find_kind(title.kind).metrics();
  Json json = begun_section("sweep", title.name, head);
  json["description"] = title.description;
  json["shown"] = title.metric;
  json["metrics"] = metrics_json(metrics);
  json["columns"] = Json::array();
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (std::ranges::find(kColumns, metrics[i].name) != kColumns.end()) json["columns"].push_back(i);
  }
  json["axes"] = Json::array();
  for (const SweepAxis& axis : sweep.axes) {
    Json values = Json::array();
    for (const Json& value : axis.values) values.push_back(value_text(value));
    json["axes"].push_back({{"name", axis.name}, {"values", std::move(values)}});
  }
  const auto policies = policies_of(results);
  json["policies"] = policies;
  json["runs"] = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    Json values = Json::array();
    for (const std::string& policy : policies) values.push_back(values_json(*results[i], policy, metrics));
    json["runs"].push_back({{"at", sweep.runs[i].at}, {"values", std::move(values)}});
  }
  return json;
}

}  // namespace vramlab
