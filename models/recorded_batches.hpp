// A recorded model as a workload of batches.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/batch_model.hpp"
#include "models/recorded_model.hpp"

namespace vramlab {

/// Two sorts of recorded model can be asked for a batch: one whose items are samples (a parameter counts the
/// items of each task; the fields `text_lengths` and `units` are a sample's text and images), and one with
/// the parameters `batch` and `seq` (rows, padded to the longest, or with several samples packed into each).
class RecordedBatches : public BatchModel {
 public:
  /// `tasks` are the names of the data set's tasks, by number. Throws InputError if the model is neither
  /// sort, has no parameter of a task's name, or is to pack samples that its recorded steps kept apart.
  RecordedBatches(std::shared_ptr<const RecordedModel> model, const std::vector<std::string>& tasks,
                  bool packs = false);

  [[nodiscard]] StepProgram build() const override { return model_->build(); }
  [[nodiscard]] StepProgram step(std::span<const Sample> batch) const override;

  /// Positions that one image takes in a padded row; 0 where rows are text alone.
  [[nodiscard]] std::int64_t tokens_per_image() const { return tokens_per_image_; }

  /// Whether the model has seen batches like this one.
  [[nodiscard]] bool in_recorded_range(std::span<const Sample> batch) const {
    return model_->in_recorded_range(conditions(batch));
  }

 private:
  void use_items(const std::vector<std::string>& tasks);
  [[nodiscard]] RecordedConditions conditions(std::span<const Sample> batch) const;

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
