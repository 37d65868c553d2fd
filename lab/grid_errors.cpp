#include "lab/grid_errors.hpp"

#include <cmath>

namespace vramlab {
namespace {

double error_of(double predicted, double measured) { return std::abs(predicted - measured) / measured; }
double error_of(Bytes predicted, Bytes measured) {
  return error_of(static_cast<double>(predicted), static_cast<double>(measured));
}

Json summary_json(const std::vector<double>& errors) {
  if (errors.empty()) return nullptr;
  const ErrorSummary summary = summarise(errors);
  Json json;
  json["points"] = summary.points;
  json["exact"] = summary.exact;
  json["median_error"] = summary.median;
  json["p95_error"] = summary.p95;
  json["max_error"] = summary.largest;
  return json;
}

}  // namespace

GridErrors grid_errors(const MeasuredGrid& grid, const std::vector<GridPrediction>& predictions) {
  GridErrors errors;
  errors.rows = {
      {"all"}, {"inside the recorded range"}, {"outside it"}, {"peak below twice the base"}, {"other peaks"}};
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const GridPrediction& predicted = predictions[i];
    const GridRow& measured = grid.rows[i];
    if (predicted.skipped) {
      ++errors.skipped;
      errors.skip_reason = predicted.reason;
      continue;
    }
    errors.outside += predicted.outside ? 1 : 0;
    ++errors.outcomes[measured.ok ? 0 : 1][predicted.oom ? 1 : 0];
    if (!measured.ok || predicted.oom) continue;
    const std::size_t by_range = predicted.outside ? 2 : 1;
    const std::size_t by_peak = predicted.small ? 3 : 4;
    for (const std::size_t sort : {std::size_t{0}, by_range, by_peak}) {
      errors.rows[sort].allocated.push_back(error_of(predicted.peak_allocated, measured.peak_allocated));
      errors.rows[sort].reserved.push_back(error_of(predicted.peak_reserved, measured.peak_reserved));
    }
    if (measured.step_ms.empty() || predicted.step_ms <= 0) continue;
    (gives_time_law(i) ? errors.fitted_times : errors.times)
        .push_back(error_of(predicted.step_ms, middle_of(measured.step_ms)));
  }
  return errors;
}

Json grid_errors_json(const GridErrors& errors) {
  constexpr const char* kKeys[] = {"", "inside_range", "outside_range_errors", "small_peaks", "other_peaks"};
  Json json;
  json["points"] =
      errors.outcomes[0][0] + errors.outcomes[0][1] + errors.outcomes[1][0] + errors.outcomes[1][1];
  json["skipped"] = errors.skipped;
  json["outside_range"] = errors.outside;
  json["peak_allocated"] = summary_json(errors.rows[0].allocated);
  json["peak_reserved"] = summary_json(errors.rows[0].reserved);
  json["step_time"] = summary_json(errors.times);
  json["step_time_of_fitted_points"] = summary_json(errors.fitted_times);
  for (std::size_t sort = 1; sort < errors.rows.size(); ++sort) {
    json[kKeys[sort]]["peak_allocated"] = summary_json(errors.rows[sort].allocated);
    json[kKeys[sort]]["peak_reserved"] = summary_json(errors.rows[sort].reserved);
  }
  json["oom"]["true_positive"] = errors.outcomes[1][1];
  json["oom"]["false_positive"] = errors.outcomes[0][1];
  json["oom"]["true_negative"] = errors.outcomes[0][0];
  json["oom"]["false_negative"] = errors.outcomes[1][0];
  return json;
}

}  // namespace vramlab
