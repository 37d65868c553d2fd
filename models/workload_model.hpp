// What a workload does to memory: a program that builds it, and a step program for every point.
#pragma once

#include <memory>
#include <string>

#include "models/step_program.hpp"
#include "sim/core/parameter_space.hpp"

namespace vramlab {

/// A workload whose memory use and step time follow from its parameters alone.
class WorkloadModel {
 public:
  virtual ~WorkloadModel() = default;

  /// The parameters a step depends on, with the range the model is meant for.
  [[nodiscard]] virtual const ParameterSpace& parameters() const = 0;

  /// What is allocated before the first step (weights); only persistent slots.
  [[nodiscard]] virtual StepProgram build() const = 0;

  /// The step at `point` (values within `parameters()`).
  [[nodiscard]] virtual StepProgram step(const Point& point) const = 0;

  /// Work done by one successful step at `point`, for throughput figures.
  [[nodiscard]] virtual std::int64_t samples(const Point& point) const = 0;
  [[nodiscard]] virtual std::int64_t pixels(const Point& point) const = 0;
};

}  // namespace vramlab
