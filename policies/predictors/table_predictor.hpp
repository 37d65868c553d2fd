// Prediction from the published table, calibrated by what batches took.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "policies/predictors/memory_predictor.hpp"

namespace vramlab {

/// GB = 1,024 MB.
struct TaskTable {
  static constexpr double kBase = 0.15;      ///< the model
  static constexpr double kOverhead = 0.12;  ///< a batch
  static constexpr double kForward = 0.28;   ///< an image
  static constexpr double kBackward = 0.35;  ///< an image, in training

  struct Task {
    const char* name;
    double multiplier;
    int images;  ///< assumed where nothing else is known of a sample
  };
  static constexpr std::array<Task, 3> kTasks{{{"T1", 1.0, 1}, {"T2", 1.85, 3}, {"T3", 1.87, 4}}};

  /// Of the task called so; 1 for any other.
  static constexpr double multiplier(std::string_view name) {
    for (const Task& task : kTasks) {
      if (name == task.name) return task.multiplier;
    }
    return 1;
  }
};

/// base + overhead + Σ images · (forward + backward) · multiplier · factor. The factor of a task is what its
/// samples took over what the table says, once 10 of them were seen. A batch's peak beyond base and overhead
/// is shared out among its samples as the table has them. A sample without images counts as one image.
class TablePredictor final : public MemoryPredictor {
 public:
  static constexpr std::int64_t kSamplesToCalibrate = 10;

  enum class Form : std::uint8_t {
    sum,        ///< as above
    collapsing  ///< the original: the sum is multiplied, once for each sample, by its multiplier over the
                ///< number of samples; factors act only when all tasks have 10 samples
  };

  /// `image`: GB an image takes; TaskTable::kForward alone where nothing is trained.
  TablePredictor(const std::vector<std::string>& tasks, Form form,
                 double image = TaskTable::kForward + TaskTable::kBackward);

  [[nodiscard]] PredictedMemory predict(const BatchShape& batch) const override;
  void learn(const BatchShape& batch, Bytes rise) override;
  void learn_at_least(const BatchShape&, Bytes) override {}  // the table knows no bounds
  [[nodiscard]] std::vector<double> save() const override;
  void restore(std::span<const double> state) override;

  [[nodiscard]] double factor(std::size_t task) const;

 private:
  struct Calibration {
    double multiplier = 1;
    double samples = 0;
    double by_table = 0;  ///< GB, of those samples
    double taken = 0;     ///< GB
  };

  static constexpr std::int64_t kKeptPowers = 64;  ///< of samples of a batch, and of a task in it

  /// What the samples of `task` multiply the original's sum with.
  [[nodiscard]] double power(std::size_t task, const BatchShape& batch) const;

  Form form_;
  double image_;
  std::vector<Calibration> tasks_;
  mutable std::vector<double> powers_;  ///< by task, samples and those of the task; −1 = not computed yet
};

}  // namespace vramlab
