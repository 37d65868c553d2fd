// Workloads of which some points were measured and nothing else is known: batch → peak, or length → largest
// batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "models/workload_model.hpp"

namespace vramlab {

/// One measurement. Either `batch` with a peak, or `length` with `largest_batch`.
struct MeasuredPoint {
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> length;  ///< of the samples; in all points or in none
  std::optional<Bytes> peak_allocated;
  std::optional<Bytes> peak_reserved;
  std::optional<std::int64_t> largest_batch;  ///< that ran at this length
};

struct MeasuredSpec {
  std::string name = "measured";
  Bytes resident = 0;               ///< live between steps, part of every peak
  std::optional<Parameter> batch;   ///< range the points are used for (default: 1 to 100,000)
  std::optional<Parameter> length;  ///< (default: what was measured)
  std::vector<MeasuredPoint> points;
};

/// Peaks between the points on straight lines in the batch and then in the length, beyond them on the line of
/// the nearest two. The peak is that of reserved memory where all points have it, else of allocated memory.
///
/// A step is one block of the peak less `resident`. What it allocates on the way, fragments and times are not
/// known: reserved memory is the peak to 2 MiB, and rates have no basis.
class MeasuredModel : public WorkloadModel {
 public:
  /// Throws InputError with the JSON pointer of each point that cannot be used: see `make_measured`.
  explicit MeasuredModel(MeasuredSpec spec);

  [[nodiscard]] const ParameterSpace& parameters() const override { return parameters_; }
  [[nodiscard]] StepProgram build() const override;
  [[nodiscard]] StepProgram step(const Point& point) const override;
  [[nodiscard]] bool timed() const override { return false; }
  [[nodiscard]] std::int64_t samples(const Point& point) const override { return point[0]; }
  [[nodiscard]] std::int64_t pixels(const Point& point) const override;

  /// Bytes at the peak of a step, `resident` included, to the next byte above; at most 1 PiB.
  [[nodiscard]] Bytes peak(const Point& point) const;

  /// Whether `point` lies beyond the points that its peak follows from.
  [[nodiscard]] bool extrapolates(const Point& point) const;

  /// "5 measured points, batch 4 to 48, reserved memory": what every answer rests on.
  [[nodiscard]] std::string basis() const;

 private:
  struct Measured {
    std::int64_t batch = 0;
    Bytes peak = 0;
  };
  struct Series {
    std::int64_t length = 0;       ///< 0 = there are no lengths
    std::vector<Measured> points;  ///< by batch, at least two
  };

  [[nodiscard]] double on_line(const Series& series, std::int64_t batch) const;

  bool has_lengths_ = false;
  bool is_reserved_ = false;
  std::size_t count_ = 0;
  Bytes resident_ = 0;
  std::vector<Series> series_;  ///< by length
  ParameterSpace parameters_;
};

/// Largest batches by length, as somebody found them: a search answers from them without a probe. Of steps
/// nothing is known; asked for one, it throws InputError.
class LargestBatches : public WorkloadModel {
 public:
  /// Throws InputError as MeasuredModel does.
  explicit LargestBatches(MeasuredSpec spec);

  [[nodiscard]] const ParameterSpace& parameters() const override { return parameters_; }
  [[nodiscard]] StepProgram build() const override;
  [[nodiscard]] StepProgram step(const Point& point) const override;
  [[nodiscard]] bool timed() const override { return false; }
  [[nodiscard]] std::int64_t samples(const Point& point) const override { return point[0]; }
  [[nodiscard]] std::int64_t pixels(const Point& point) const override { return point[0] * point[1]; }

  struct Answer {
    std::int64_t batch = 0;     ///< 0 = not even one sample
    bool given = false;         ///< as it stands in a point
    bool extrapolated = false;  ///< the length lies beyond all points
    std::string reason;
  };
  /// The largest batch at `length`. Between two points the tokens of a batch (length · batch) lie on a
  /// straight line, beyond them on that of the nearest two; the batch is rounded down.
  [[nodiscard]] Answer at(std::int64_t length) const;

 private:
  struct Given {
    std::int64_t length = 0;
    std::int64_t batch = 0;
  };
  std::vector<Given> given_;  ///< by length, at least two
  ParameterSpace parameters_;
};

/// The model that the points are for. Throws InputError with JSON pointers ("/points/2/peak_reserved") if
/// there are fewer than two points (at any length), points twice, a peak that falls where batch or length
/// grows, one that is flat between the two largest batches, a mixture of both sorts, or none.
std::unique_ptr<WorkloadModel> make_measured(MeasuredSpec spec);

}  // namespace vramlab
