// A workload that was recorded: its steps at parameters, and over batches, that need not have been.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/recorded_spec.hpp"
#include "models/workload_model.hpp"

namespace vramlab {

/// What a step is asked for, beyond a point: the fields of its items, where a workload has items.
struct RecordedConditions {
  Point point;                                    ///< in the order of the model's parameters
  std::vector<std::vector<std::int64_t>> fields;  ///< by field, one value an item; empty = as recorded
};

/// The workload of one specification.
class RecordedModel : public WorkloadModel {
 public:
  /// Throws InputError if the specification is damaged.
  explicit RecordedModel(RecordedSpec spec);

  [[nodiscard]] const ParameterSpace& parameters() const override { return parameters_; }
  [[nodiscard]] StepProgram build() const override;
  [[nodiscard]] StepProgram step(const Point& point) const override { return step(with_items(point)); }
  [[nodiscard]] bool timed() const override { return spec_.time.known(); }
  [[nodiscard]] std::int64_t samples(const Point& point) const override;
  [[nodiscard]] std::int64_t pixels(const Point& point) const override;

  /// The step under `conditions`. Throws InputError where a size leaves what 62 bits hold.
  [[nodiscard]] StepProgram step(const RecordedConditions& conditions) const;

  /// The program that the recorded shape number `shape` had, with the sizes of the forms.
  [[nodiscard]] StepProgram recorded_step(std::size_t shape, const RecordedConditions& conditions) const;

  /// For each operation of that step that is an `allocate` or a `workspace`, in order: the number of the
  /// tensor in the specification.
  [[nodiscard]] std::vector<std::uint32_t> step_tensors(const RecordedConditions& conditions) const;

  /// `point` with items as the recording had them.
  [[nodiscard]] RecordedConditions with_items(const Point& point) const;

  /// `point` with items whose fields are given by name; where a field is missing, items as recorded.
  [[nodiscard]] RecordedConditions conditions_of(
      const Point& point, const std::map<std::string, std::vector<std::int64_t>>& fields) const;

  /// Whether every parameter and the main product lie within what was recorded.
  [[nodiscard]] bool in_recorded_range(const RecordedConditions& conditions) const;

  /// The shortest and the longest step in seconds, as timed, where the host, which launches the kernels, may
  /// be the bottleneck of a step under `conditions`; empty where it is not.
  [[nodiscard]] std::optional<std::pair<double, double>> host_range(
      const RecordedConditions& conditions) const;

  [[nodiscard]] const RecordedSpec& spec() const { return spec_; }

 private:
  RecordedSpec spec_;
  ParameterSpace parameters_;
};

/// A recorded model as a workload of batches. Two sorts of recorded model can be asked for a batch: one whose
/// items are samples (a parameter counts the items of each task; the fields `text_lengths` and `units` are a
/// sample's text and images), and one with the parameters `batch` and `seq` (rows, padded to the longest, or
/// with several samples packed into each).
class RecordedBatches : public BatchModel {
 public:
  /// `tasks` are the names of the data set's tasks, by number. Throws InputError if the model is neither
  /// sort, has no parameter of a task's name, or is to pack samples that its recorded steps kept apart.
  RecordedBatches(std::shared_ptr<const RecordedModel> model, const std::vector<std::string>& tasks,
                  bool packs = false);

  [[nodiscard]] StepProgram build() const override { return model_->build(); }
  [[nodiscard]] StepProgram step(std::span<const Sample> batch) const override;
  [[nodiscard]] std::int64_t positions(std::span<const Sample> batch) const override;
  [[nodiscard]] bool timed() const override { return model_->timed(); }

  /// Positions that one image takes in a padded row; 0 where rows are text alone.
  [[nodiscard]] std::int64_t tokens_per_image() const { return tokens_per_image_; }

  /// Whether the model has seen batches like this one.
  [[nodiscard]] bool in_recorded_range(std::span<const Sample> batch) const {
    return model_->in_recorded_range(conditions(batch));
  }

 private:
  void use_items(const std::vector<std::string>& tasks);
  [[nodiscard]] RecordedConditions conditions(std::span<const Sample> batch) const;
  [[nodiscard]] std::int64_t rows_of(std::span<const Sample> batch) const;

  std::shared_ptr<const RecordedModel> model_;
  bool packs_;
  std::vector<std::size_t> parameters_;  ///< by task: the one that counts its items; empty = batch and seq
  std::size_t length_field_ = 0;
  std::size_t image_field_ = 0;
  std::size_t rows_ = 0;     ///< parameter `batch`
  std::size_t longest_ = 0;  ///< parameter `seq`
  std::int64_t tokens_per_image_ = 0;
};

}  // namespace vramlab
