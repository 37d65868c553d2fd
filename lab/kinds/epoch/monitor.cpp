#include "lab/kinds/epoch/monitor.hpp"

#include <algorithm>
#include <cmath>

#include "lab/experiment.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

double mib(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(1_MiB); }
double in_gib(Bytes bytes) { return mib(bytes) / 1024; }

// A declared figure of each task that the batch has samples of; null where none was declared.
Json by_task(const BatchRecord& batch, const std::vector<std::string>& tasks,
             std::span<const double> figures) {
  if (figures.empty()) return nullptr;
  Json json = Json::object();
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    if (batch.shape.task_samples[task] > 0) json[tasks[task]] = figures[task];
  }
  return json;
}

Json batch_json(const BatchRecord& batch, const std::vector<std::string>& tasks, const std::string& origin) {
  Json json;
  json["batch_idx"] = batch.number - 1;
  json["epoch"] = batch.epoch;
  json["timestamp"] = to_seconds(batch.start);
  json["duration_ms"] = to_seconds(batch.duration) * 1000;
  json["task_types"] = Json::array();
  json["task_counts"] = Json::object();
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    const std::int64_t count = batch.shape.task_samples[task];
    if (count == 0) continue;
    json["task_types"].push_back(tasks[task]);
    json["task_counts"][tasks[task]] = count;
  }
  json["batch_size"] = batch.shape.samples;
  json["memory_allocated_mb"] = mib(batch.peak_allocated);
  json["memory_reserved_mb"] = mib(batch.peak_reserved);
  const bool predicts = batch.predicted.likely > 0;
  json["predicted_mb"] =
      predicts ? Json(mib(batch.allocated_before + batch.predicted.likely)) : Json(nullptr);
  const BatchLimits& limits = batch.limits;
  if (limits.budget) json["budget_mb"] = mib(*limits.budget);
  if (limits.most_samples) json["most_samples"] = *limits.most_samples;
  json["prediction_error"] = number_json(batch.prediction_error());
  json["padding"] = 1 - static_cast<double>(batch.shape.tokens) / static_cast<double>(batch.padded_positions);
  json["oom"] = batch.result == StepResult::oom;
  json["oversize"] = batch.oversize;
  json["checkpointing"] = batch.checkpointing;
  json["optimizer_step"] = batch.steps;
  json["effective_batch"] = batch.steps ? Json(batch.effective) : Json(nullptr);
  json["learning_rate_scale"] = batch.learning_rate_scale;
  json["loss"] = number_json(batch.loss());
  json["per_task_loss"] = by_task(batch, tasks, batch.task_losses);
  json["per_task_gradient_norm"] = by_task(batch, tasks, batch.gradient_norms);
  json["loss_origin"] = origin.empty() ? Json(nullptr) : Json(origin);
  return json;
}

Json totals_json(const EpochTotals& totals, const std::vector<std::string>& tasks) {
  Json json;
  const double seconds = to_seconds(totals.duration);
  json["duration_s"] = seconds;
  json["batches"] = totals.batches;
  json["ooms"] = totals.ooms;
  json["samples"] = totals.samples;
  json["skipped_samples"] = totals.skipped;
  json["optimizer_steps"] = totals.steps;
  json["samples_per_s"] = seconds > 0 ? static_cast<double>(totals.samples) / seconds : 0;
  json["budget_use"] = totals.batches > 0 ? totals.usage / static_cast<double>(totals.batches) : 0;
  json["peak_allocated_mb"] = mib(totals.peak_allocated.bytes);
  json["peak_reserved_mb"] = mib(totals.peak_reserved.bytes);
  json["predictor_error"] = number_json(totals.errors.mean());
  json["predictor_bias"] = number_json(totals.errors.bias());
  json["predictor_unsafe_share"] = number_json(totals.errors.unsafe_share());
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    Json& one = json["tasks"][tasks[task]];
    one["samples"] = totals.task_samples[task];
    one["predictor_error"] = number_json(totals.task_errors[task].mean());
  }
  return json;
}

}  // namespace

void BatchSeries::add(const BatchRecord& batch) {
  if (points_.empty() || points_.back().batches == stride_) {
    if (points_.size() == kMostPoints) join_neighbours();
    points_.emplace_back();
  }
  Point& point = points_.back();
  point.last_batch = static_cast<double>(batch.number);
  point.batches += 1;
  if (batch.result == StepResult::ok) point.samples += static_cast<double>(batch.shape.samples);
  point.seconds += to_seconds(batch.duration);
  point.peak_gib = std::max(point.peak_gib, in_gib(batch.peak_allocated));
  point.reserved_gib = std::max(point.reserved_gib, in_gib(batch.peak_reserved));
  point.batch_size += static_cast<double>(batch.shape.samples);
  if (batch.limits.budget) point.budget_gib = in_gib(*batch.limits.budget);
  if (batch.limits.most_samples) point.most_samples = static_cast<double>(*batch.limits.most_samples);
  const double error = batch.prediction_error();
  if (!std::isnan(error)) {
    point.error += std::abs(error);
    point.predicted += 1;
  }
  const double loss = batch.loss();
  if (!std::isnan(loss)) {
    point.loss += loss;
    point.with_loss += 1;
  }
}

void BatchSeries::join_neighbours() {
  for (std::size_t i = 0; i + 1 < points_.size(); i += 2) {
    const Point& a = points_[i];
    const Point& b = points_[i + 1];
    points_[i / 2] = {.last_batch = b.last_batch,
                      .batches = a.batches + b.batches,
                      .samples = a.samples + b.samples,
                      .seconds = a.seconds + b.seconds,
                      .peak_gib = std::max(a.peak_gib, b.peak_gib),
                      .reserved_gib = std::max(a.reserved_gib, b.reserved_gib),
                      .batch_size = a.batch_size + b.batch_size,
                      .budget_gib = b.budget_gib,
                      .most_samples = b.most_samples,
                      .error = a.error + b.error,
                      .predicted = a.predicted + b.predicted,
                      .loss = a.loss + b.loss,
                      .with_loss = a.with_loss + b.with_loss};
  }
  points_.resize(points_.size() / 2);
  stride_ *= 2;
}

EpochMonitor::EpochMonitor(const EpochScenario& scenario, std::string label, const fs::path& folder)
    : scenario_(scenario),
      label_(std::move(label)),
      folder_(made_folder(folder)),
      batches_file_(folder / "batch_metrics.json") {
  batches_file_.write("[");
}

void EpochMonitor::batch_ends(const BatchRecord& batch) {
  series_.add(batch);
  pending_ += any_ ? ",\n" : "\n";
  pending_ += batch_json(batch, scenario_.setup.tasks, scenario_.series_origin).dump();
  any_ = true;
  if (++pending_batches_ == kBatchesAtATime) write_batches();
}

void EpochMonitor::write_batches() {
  batches_file_.write(pending_);
  pending_.clear();
  pending_batches_ = 0;
}

void EpochMonitor::epoch_ends(std::int64_t epoch, const EpochTotals& totals) {
  Json json = totals_json(totals, scenario_.setup.tasks);
  json["epoch"] = epoch;
  epochs_.push_back(std::move(json));
}

std::vector<std::string> EpochMonitor::finish(const EpochResult& result) {
  write_batches();
  batches_file_.write("\n]\n");
  batches_file_.commit();
  std::vector<std::string> files{(folder_ / "batch_metrics.json").string()};
  const auto write = [&](const char* name, const Json& json) {
    files.push_back((folder_ / name).string());
    write_file(files.back(), json.dump(2) + '\n');
  };
  write("epoch_metrics.json", epochs_);
  Json report;
  report["scenario"] = scenario_.name;
  report["label"] = label_;
  report["epochs"] = epochs_.size();
  report["loss_origin"] = scenario_.series_origin.empty() ? Json(nullptr) : Json(scenario_.series_origin);
  report["ended_early"] = result.run.ended_early.empty() ? Json(nullptr) : Json(result.run.ended_early);
  report["metrics"] = figures_json(result.metrics);
  report["tasks"] = task_json(scenario_.setup, result.run);
  report["totals"] = totals_json(result.run.totals, scenario_.setup.tasks);
  write("training_report.json", report);
  draw(result, files);
  return files;
}

void EpochMonitor::draw(const EpochResult& result, std::vector<std::string>& files) const {
  PanelPicture picture{.title = scenario_.name + ": " + label_, .axis_name = "batch"};
  picture.panels = {{"samples/s", {{"throughput", {}}}},
                    {"GiB", {{"peak allocated", {}}, {"peak reserved", {}}}},
                    {"samples", {{"batch size", {}}}},
                    {"%", {{"prediction error", {}}}}};
  const auto tuner = scenario_.tuners.find(label_);
  const bool tuned = tuner != scenario_.tuners.end();
  const bool has_budget = tuned && tuner->second.tuning.moves == BatchTuning::Moves::budget;
  if (tuned) {
    auto& curves = picture.panels[has_budget ? 1 : 2].curves;
    curves.push_back({has_budget ? "budget" : "most samples", {}});
  }
  const bool losses = !scenario_.series_origin.empty();
  if (losses) picture.panels.push_back({"loss, " + scenario_.series_origin, {{"loss", {}}}});
  for (const BatchSeries::Point& point : series_.points()) {
    const auto add = [&](std::size_t panel, std::size_t curve, double value) {
      picture.panels[panel].curves[curve].values.push_back(value);
    };
    picture.axis.push_back(point.last_batch);
    add(0, 0, point.samples / point.seconds);
    add(1, 0, point.peak_gib);
    add(1, 1, point.reserved_gib);
    add(2, 0, point.batch_size / point.batches);
    if (tuned) has_budget ? add(1, 2, point.budget_gib) : add(2, 1, point.most_samples);
    add(3, 0, point.predicted > 0 ? 100 * point.error / point.predicted : std::nan(""));
    if (losses) add(4, 0, point.with_loss > 0 ? point.loss / point.with_loss : std::nan(""));
  }
  if (picture.axis.empty()) return;
  files.push_back((folder_ / "training_curves.svg").string());
  draw_panels(picture, files.back());

  const Json tasks = task_json(scenario_.setup, result.run);
  BarPicture bars{.title = scenario_.name + ": " + label_, .unit = "%", .groups = scenario_.setup.tasks};
  const std::pair<const char*, const char*> rows[] = {{"share of the data", "data_share"},
                                                      {"of the samples trained on", "sample_share"},
                                                      {"of the gradient", "gradient_share"},
                                                      {"prediction error", "predictor_error"}};
  for (const auto& [name, key] : rows) {
    bars.bars.push_back({name, {}});
    for (const std::string& task : scenario_.setup.tasks) {
      const Json& value = tasks[task][key];
      bars.bars.back().values.push_back(value.is_null() ? std::nan("") : 100 * value.get<double>());
    }
  }
  files.push_back((folder_ / "task_comparison.svg").string());
  draw_bars(bars, files.back());
}

}  // namespace vramlab
