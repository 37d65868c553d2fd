// The monitor of an epoch run: JSON files of batches and epochs, a report, and pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lab/kinds/epoch/spec.hpp"
#include "report/output_file.hpp"
#include "sim/runs/epoch_loop.hpp"

namespace vramlab {

/// A series over batches that keeps a bounded number of points: when it is full, neighbours are joined.
class BatchSeries {
 public:
  static constexpr std::size_t kMostPoints = 1000;

  /// Sums over the batches of one point.
  struct Point {
    double last_batch = 0;
    double batches = 0;
    double samples = 0;
    double seconds = 0;
    double peak_gib = 0;      ///< highest
    double reserved_gib = 0;  ///< highest
    double batch_size = 0;
    double budget_gib = 0;    ///< of its last batch; 0 = none was set
    double most_samples = 0;  ///< the same
    double error = 0;
    double predicted = 0;  ///< batches that had a prediction
    double loss = 0;
    double with_loss = 0;  ///< batches that had a loss
  };
  void add(const BatchRecord& batch);
  [[nodiscard]] const std::vector<Point>& points() const { return points_; }

 private:
  void join_neighbours();
  std::vector<Point> points_;
  double stride_ = 1;  ///< batches of a point
};

/// Writes FOLDER/batch_metrics.json while the run goes on, 100 batches at a time, and keeps none of them; the
/// other files at its end.
class EpochMonitor : public BatchListener {
 public:
  static constexpr std::size_t kBatchesAtATime = 100;

  /// Makes the folder. Throws InputError if that fails.
  EpochMonitor(const EpochScenario& scenario, std::string label, const std::filesystem::path& folder);

  void batch_ends(const BatchRecord& batch) override;
  void epoch_ends(std::int64_t epoch, const EpochTotals& totals) override;

  /// Completes batch_metrics.json and writes epoch_metrics.json, training_report.json and the pictures
  /// training_curves.svg and task_comparison.svg. Returns the files written.
  std::vector<std::string> finish(const EpochResult& result);

  /// Batches that are not written yet: fewer than kBatchesAtATime.
  [[nodiscard]] std::size_t held_batches() const { return pending_batches_; }

  /// What the curves are drawn from.
  [[nodiscard]] const BatchSeries& series() const { return series_; }

 private:
  void write_batches();
  void draw(const EpochResult& result, std::vector<std::string>& files) const;

  const EpochScenario& scenario_;
  std::string label_;
  std::filesystem::path folder_;
  OutputFile batches_file_;
  std::string pending_;  ///< batches not written yet, as text
  std::size_t pending_batches_ = 0;
  bool any_ = false;
  Json epochs_ = Json::array();
  BatchSeries series_;
};

}  // namespace vramlab
