#include <algorithm>
#include <iterator>

#include "core/error.hpp"
#include "lab/kinds/training/view.hpp"
#include "lab/page/drawing.hpp"
#include "lab/page/sections.hpp"
#include "recordings/runs/run_trace.hpp"
#include "report/output_file.hpp"
#include "report/pictures.hpp"

namespace vramlab {
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

Json run_json(const PolicyResult& result, std::size_t parameters) {
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
  Json json = begun_section("training", scenario.name, head);
  json["description"] = scenario.description;
  json["iterations"] = scenario.setup.iterations;
  json["band"] = {target.usage - target.margin, target.usage + target.margin};
  json["metrics"] = metrics_json(training_metric_table());
  json["parameters"] = Json::array();
  for (const Parameter& parameter : scenario.setup.bounds.parameters)
    json["parameters"].push_back(parameter.name);
  Bytes total = 0;
  json["policies"] = Json::array();
  for (const PolicyResult& result : comparison.policies) {
    json["policies"].push_back(run_json(result, scenario.setup.bounds.size()));
    if (!result.run.iterations.empty()) total = std::max(total, result.run.iterations.back().memory.total);
  }
  json["total"] = total;
  return json;
}

void draw_training(const TrainingScenario& scenario, const Comparison& comparison, const std::string& title,
                   const std::string& file) {
  PictureFrame frame{.title = title,
                     .parameters = {},
                     .band_low = scenario.target.usage - scenario.target.margin,
                     .band_high = scenario.target.usage + scenario.target.margin};
  for (const Parameter& parameter : scenario.setup.bounds.parameters)
    frame.parameters.push_back(parameter.name);
  std::vector<PictureRun> runs;
  for (const PolicyResult& result : comparison.policies)
    runs.push_back({result.label, &result.run.iterations});
  draw_trace_picture(frame, runs, file);
}

void require_trace_name(const std::string& file) {
  if (file.empty() || file.ends_with(".jsonl") || file.ends_with(".csv") ||
      file.ends_with(".perfetto.json")) {
    return;
  }
  throw InputError(file, "a trace's name must end in .jsonl, .csv or .perfetto.json.");
}

void write_trace(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                 const std::string& file, const std::string& title) {
  require_trace_name(file);
  if (file.ends_with(".perfetto.json")) return write_file(file, trace_perfetto(title, space, records));
  write_file(file, file.ends_with(".csv") ? trace_csv(space, records) : trace_jsonl(space, records));
}

}  // namespace vramlab
