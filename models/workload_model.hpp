// What a workload does to memory: a program that builds it, and a step program for every point or batch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/parameter_space.hpp"
#include "core/units.hpp"
#include "models/sample.hpp"
#include "models/step_program.hpp"

namespace vramlab {

/// max(floor, base + slope · pixels). Below the floor the host is the bottleneck: it cannot launch the
/// kernels of a step any faster, however small they are.
struct StepTimeLaw {
  double floor_seconds = 0;
  double base_seconds = 0;
  double seconds_per_pixel = 0;  ///< of the input, all samples together

  /// Duration of a step over `pixels` ≥ 0 input pixels, to the nearest nanosecond; at most 1,000 s.
  [[nodiscard]] SimTime duration(std::int64_t pixels) const {
    const double compute = base_seconds + seconds_per_pixel * static_cast<double>(pixels);
    return from_seconds(std::min(1000.0, std::max(floor_seconds, compute)));
  }

  /// Whether it says anything: a law of noughts is that of steps that were never timed.
  [[nodiscard]] bool known() const { return floor_seconds > 0 || base_seconds > 0 || seconds_per_pixel > 0; }

  friend bool operator==(const StepTimeLaw&, const StepTimeLaw&) = default;
};

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

  /// Whether its steps have times. Where they have none, no rate has a basis.
  [[nodiscard]] virtual bool timed() const { return true; }
};

/// A workload whose steps follow from the samples of a batch.
class BatchModel {
 public:
  virtual ~BatchModel() = default;

  /// What is allocated before the first step; only persistent slots.
  [[nodiscard]] virtual StepProgram build() const = 0;

  /// The step over `batch`, which has at least one sample. Throws InputError for a batch that the model
  /// cannot express.
  [[nodiscard]] virtual StepProgram step(std::span<const Sample> batch) const = 0;

  /// Positions that the rows of `batch` have together as collated, padding included.
  [[nodiscard]] virtual std::int64_t positions(std::span<const Sample> batch) const = 0;

  /// Whether its steps have times; durations and rates of a run mean nothing without them.
  [[nodiscard]] virtual bool timed() const { return true; }
};

/// `step` as a later micro-batch of an accumulated step does it: the gradients of the micro-batches before
/// stay, and each new one lives only until it has been added to the old. Which persistent tensors are
/// gradients: those that the step itself makes anew each time.
StepProgram accumulating(StepProgram step);

}  // namespace vramlab
