// What a workload does to memory: a program that builds it, and a step program for every point.
#pragma once

#include <cstddef>
#include <cstdint>

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

  /// How many steps at a point that is new to the process differ from the later ones there (a library that
  /// searches for its best algorithm on a new shape, buffers that are still growing). 0 for most models.
  [[nodiscard]] virtual std::size_t first_steps() const { return 0; }

  /// The step at `point` after `visits` earlier steps there; asked only for visits < first_steps().
  [[nodiscard]] virtual StepProgram first_step(const Point& point, std::size_t /*visits*/) const {
    return step(point);
  }

  /// On how many cards it runs. A workload of one card that is given several runs whole on each of them,
  /// side by side (data parallel).
  [[nodiscard]] virtual std::size_t cards() const { return 1; }

  /// What card number `card` does of it (card < cards()); cards with parts of a model work one after another.
  [[nodiscard]] virtual const WorkloadModel& on_card(std::size_t /*card*/) const { return *this; }

  /// Work done by one successful step at `point`, for throughput figures.
  [[nodiscard]] virtual std::int64_t samples(const Point& point) const = 0;
  [[nodiscard]] virtual std::int64_t pixels(const Point& point) const = 0;
};

}  // namespace vramlab
