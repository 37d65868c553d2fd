#include "lab/kinds/training/view.hpp"

#include <algorithm>

#include "lab/page/sections.hpp"
#include "lab/page/thinning.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostPoints = 4000;  // some two a pixel of a wide screen

std::int64_t plain(Bytes bytes) { return static_cast<std::int64_t>(bytes); }

Json curves_json(const std::vector<BatchFigures>& batches) {
  const std::size_t stride = curve_stride(batches.size(), kMostPoints);
  const auto curve = [&](const auto& value) {
    return curve_json(thinned_curve(batches.size(), stride, [&](std::size_t i) {
      return CurvePoint{batches[i].number, value(batches[i])};
    }));
  };
  Json json;
  json["stride"] = stride;
  json["allocated"] = curve([](const BatchFigures& batch) { return plain(batch.allocated); });
  json["reserved"] = curve([](const BatchFigures& batch) { return plain(batch.reserved); });
  json["limit"] = curve([](const BatchFigures& batch) { return plain(batch.total); });
  const bool predicts = std::any_of(batches.begin(), batches.end(),
                                    [](const BatchFigures& batch) { return batch.predicted > 0; });
  json["predicted"] =
      predicts ? curve([](const BatchFigures& batch) { return plain(batch.predicted); }) : Json::array();
  json["points"] = {curve([](const BatchFigures& batch) { return batch.samples; }),
                    curve([](const BatchFigures& batch) { return batch.positions; })};
  return json;
}

Json batches_json(const std::vector<BatchFigures>& batches, bool BatchFigures::*what) {
  std::vector<RunMark> marks;
  for (const BatchFigures& batch : batches) {
    if (batch.*what) marks.push_back({batch.number, batch.number, 1});
  }
  return marks_json(marks);
}

}  // namespace

Json epoch_section(const EpochScenario& scenario, const std::vector<EpochResult>& results,
                   const std::vector<BatchHistory>& histories, const SectionHead& head) {
  Json json;
  json["kind"] = "epoch";
  json["title"] = scenario.name;
  json["verdict"] = head.verdict;
  json["head"] = head.head;
  json["description"] = scenario.description;
  json["notes"] = scenario.notes;
  json["metrics"] = metrics_json("epoch");
  json["parameters"] = {"samples", "positions"};
  std::int64_t last = 1;
  Bytes total = 0;
  json["policies"] = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& batches = histories[i].batches();
    Json policy = curves_json(batches);
    policy["label"] = results[i].label;
    if (!results[i].run.ended_early.empty()) policy["ended_early"] = results[i].run.ended_early;
    policy["metrics"] = figures_json(results[i].metrics);
    policy["ooms"] = batches_json(batches, &BatchFigures::ran_out);
    policy["oversize"] = batches_json(batches, &BatchFigures::oversize);
    json["policies"].push_back(std::move(policy));
    if (batches.empty()) continue;
    last = std::max(last, batches.back().number);
    total = std::max(total, batches.back().total);
  }
  json["iterations"] = last;
  json["total"] = total;
  return json;
}

}  // namespace vramlab
