// What a model says of steps at given parameters on a given card.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/gpu_catalogue.hpp"
#include "models/recorded_spec.hpp"
#include "models/workload_model.hpp"
#include "recordings/scripts/client_program.hpp"
#include "sim/memory/caching/caching_allocator.hpp"

namespace vramlab {

/// Throws InputError with `option` if two of its `settings` (NAME=N) have one name, or a name is empty or has
/// a blank in it.
void require_names_once(const std::vector<std::string>& settings, const std::string& option);

/// A model, parameters, a card and the allocator's settings.
struct PredictionQuestion {
  explicit PredictionQuestion(const WorkloadModel& asked);

  /// Reads "batch=8". Throws InputError for a parameter the model does not have, one that never moved in its
  /// recording, or a value outside its range; `option` is what it was given with.
  void set(const std::string& setting, const std::string& option = "--set");

  /// What the card holds besides the allocator: as the model's recording had it on such a card, else the
  /// context alone; of one of several ranks what was recorded, if that is more.
  [[nodiscard]] Bytes outside() const;
  [[nodiscard]] bool outside_recorded() const;
  /// It was recorded on another card, and is assumed for this one.
  [[nodiscard]] bool outside_assumed() const;

  /// What the allocator can reserve at most: the limit if one is set, else the card without what lies
  /// outside.
  [[nodiscard]] Bytes usable() const;

  const WorkloadModel* model;
  Point point;  ///< at first the middle of each range; of a network by its layers its usual values
  const Gpu* gpu = nullptr;
  AllocatorOptions allocator;
  bool of_ranks = false;  ///< one of several processes, which hold buffers to exchange data (NCCL) as well
  bool extrapolated = false;  ///< with a number of processes that was not recorded
};

/// Two steps of a fresh process: the second finds the first one's gradients and optimizer state.
struct Prediction {
  bool fits = false;
  Bytes peak_allocated = 0;  ///< up to the failure if it does not fit
  Bytes peak_reserved = 0;
  Bytes failed = 0;  ///< the request that failed
  double step_seconds = 0;
  bool bound_by_host = false;  ///< timed steps there took from `least_seconds` to `most_seconds`
  double least_seconds = 0;
  double most_seconds = 0;
  std::uint64_t allocator_ooms = 0;  ///< refused requests, those that a library answered included
  bool outside_range = false;        ///< beyond what was recorded
  /// A recorded step that failed at no larger parameters with no less room: the step does not fit, whatever
  /// the simulation says.
  const RecordedFailure* disproved_by = nullptr;
};
Prediction predict_step(const PredictionQuestion& question);

struct LargestValue {
  std::int64_t value = 0;     ///< 0 = not even the smallest fits
  std::int64_t smallest = 0;  ///< of the model's range
  bool at_bound = false;      ///< the model knows no larger one
};
/// The largest value of a parameter at which the step fits, the others as in `question`; found by bisection,
/// as memory grows with the parameter. Throws InputError for an unknown parameter.
LargestValue find_largest(PredictionQuestion question, const std::string& parameter);

// What a fitted model would ask of its allocator at given parameters, as a program for what-if replays.

/// A step done in parts of one of its parameters, whose gradients add up.
struct BatchPart {
  std::size_t parameter = 0;
  std::int64_t size = 1;  ///< at least 1; the last part may be smaller
};

/// Reads "batch=2", which must be less than what `point` has and not below the model's range. Throws
/// InputError, naming `option`.
BatchPart read_batch_part(const WorkloadModel& model, const Point& point, const std::string& text,
                          const std::string& option);

/// Building and three steps of `model` at `point`, with a mark after each, in parts where `part` is given.
/// Settings, limit and card are those of `recording`, which the model was fitted from. A workspace is asked
/// for once and may not stay away.
ClientProgram predicted_program(const WorkloadModel& model, const Point& point,
                                const ClientProgram& recording, const std::optional<BatchPart>& part = {});

}  // namespace vramlab
