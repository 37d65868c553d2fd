// A workload that was recorded: its steps at parameters that need not have been.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
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

  [[nodiscard]] const RecordedSpec& spec() const { return spec_; }

 private:
  RecordedSpec spec_;
  ParameterSpace parameters_;
};

}  // namespace vramlab
