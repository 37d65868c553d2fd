// Workloads of plain figures, for thought experiments: a line in the batch size, and a table of bytes by
// sample.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "models/workload_model.hpp"

namespace vramlab {

/// Peak of a step = fixed + per_sample · batch, to the nearest 2 MiB; between steps `resident` stays. The
/// first step of a process leaves `state` behind, which every later peak contains as well.
///
/// Every allocation is a multiple of 2 MiB and at least 10 MiB, and each sample has its own. PyTorch's
/// allocator then neither rounds nor splits, and finds an exact match in its cache for every sample it has
/// seen before, so that its habits do not blur the line (R1.2, R2.2, R3.1).
struct LinearSpec {
  std::string name = "linear";
  Bytes fixed = 0;       ///< part of the peak that does not depend on the batch; contains `resident`
  Bytes per_sample = 0;  ///< at least 12 MiB
  Bytes resident = 0;  ///< live between steps; 0 or at least 10 MiB, and so is fixed − resident (to 2 MiB)
  Bytes state = 0;     ///< made at the end of the first step in one piece (optimizer); 0 or at least 10 MiB
  Parameter batch{"batch", 1, 64};
  /// Peaks of the first steps at a batch size that is new to the process, as shares of the settled peak.
  std::vector<double> first_steps;
  StepTimeLaw time;  ///< with samples in place of pixels

  friend bool operator==(const LinearSpec&, const LinearSpec&) = default;
};

/// The workload of one specification. Its one parameter is the batch size; a sample counts as one pixel.
class LinearWorkload : public WorkloadModel {
 public:
  /// Throws InputError if a size lies outside what `LinearSpec` allows.
  explicit LinearWorkload(LinearSpec spec);

  [[nodiscard]] const ParameterSpace& parameters() const override { return parameters_; }
  [[nodiscard]] StepProgram build() const override;
  [[nodiscard]] StepProgram step(const Point& point) const override;
  [[nodiscard]] std::size_t first_steps() const override { return spec_.first_steps.size(); }
  [[nodiscard]] StepProgram first_step(const Point& point, std::size_t visits) const override;
  [[nodiscard]] bool timed() const override { return spec_.time.known(); }
  [[nodiscard]] std::int64_t samples(const Point& point) const override { return point[0]; }
  [[nodiscard]] std::int64_t pixels(const Point& point) const override { return point[0]; }

  /// Highest number of bytes allocated during a step of `batch` samples, `state` aside.
  [[nodiscard]] Bytes peak(std::int64_t batch) const;

 private:
  /// The tensors of a settled step, in order.
  [[nodiscard]] std::vector<Bytes> sizes(std::int64_t batch) const;
  [[nodiscard]] StepProgram program(const std::vector<Bytes>& sizes, std::int64_t batch) const;
  [[nodiscard]] std::uint32_t persistent_slots() const { return spec_.state > 0 ? 2 : 1; }

  LinearSpec spec_;
  ParameterSpace parameters_;
};

/// Bytes for a sample by its number of images, and bytes for a position. Sizes in bytes; each tensor is
/// rounded up to 2 MiB, so that PyTorch's rules neither round nor split. A step takes at most 1,000 s.
struct SampleSizes {
  Bytes resident = 0;               ///< weights, live all the time
  std::vector<Bytes> by_images;     ///< of a sample with 0, 1, 2 … images; the last counts for more
  Bytes per_token = 0;              ///< for each position, padding included
  double floor_seconds = 0.05;      ///< a step takes at least this long …
  double seconds_per_sample = 0;    ///< … or this long for each of its samples …
  double seconds_per_position = 0;  ///< … and this long for each position, padding included
};

/// All samples of a batch live at the same time, from the first to the last, and go together. Each takes a
/// row padded to the longest; where they are packed they lie end to end, and there is no padding.
class SampleSizeModel : public BatchModel {
 public:
  explicit SampleSizeModel(SampleSizes sizes, bool packs = false) : sizes_(std::move(sizes)), packs_(packs) {}

  [[nodiscard]] StepProgram build() const override;
  [[nodiscard]] StepProgram step(std::span<const Sample> batch) const override;
  [[nodiscard]] std::int64_t positions(std::span<const Sample> batch) const override;

 private:
  SampleSizes sizes_;
  bool packs_;
};

}  // namespace vramlab
