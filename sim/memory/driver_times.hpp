// What calls of the CUDA driver cost in time (R10.6). Orders of magnitude: a second run of the same test was
// slower by a factor of 1.1 to 3.4.
#pragma once

#include <vector>

#include "sim/core/units.hpp"

namespace vramlab {

/// What one call took at one size.
struct MeasuredTime {
  Bytes size = 0;
  SimTime time{0};

  friend bool operator==(const MeasuredTime&, const MeasuredTime&) = default;
};

/// The times of one card. Every list has rising sizes and at least two entries; between two of them times are
/// linear, below the first constant, above the last along the last line.
struct DriverTimes {
  std::vector<MeasuredTime> mallocs;
  std::vector<MeasuredTime> frees;
  std::vector<MeasuredTime> creates;  ///< of one physical page of that size
  std::vector<MeasuredTime> maps;
  std::vector<MeasuredTime> unmaps;

  /// cudaMalloc of `size` bytes.
  [[nodiscard]] SimTime malloc_time(Bytes size) const;
  /// cudaFree of a segment of `size` bytes.
  [[nodiscard]] SimTime free_time(Bytes size) const;
  /// Creating `pages` physical pages and mapping them, `size` bytes in all.
  [[nodiscard]] SimTime map_time(Bytes size, Bytes pages) const;
  /// Unmapping `size` bytes.
  [[nodiscard]] SimTime unmap_time(Bytes size) const;

  /// Medians of 15 calls each on an H100 80GB HBM3, CUDA 13.0.
  static const DriverTimes& of_h100();

  friend bool operator==(const DriverTimes&, const DriverTimes&) = default;
};

}  // namespace vramlab
