// How far a model is from a grid of measured points, summed up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/measured_grid.hpp"

namespace vramlab {

/// Every other point in the order of the file, beginning with the first, gives the step-time law of a fitted
/// model; the others measure it.
constexpr bool gives_time_law(std::size_t row) { return row % 2 == 0; }

/// Errors |predicted − measured| / measured of some rows.
struct RowErrors {
  std::string what;
  std::vector<double> allocated;
  std::vector<double> reserved;
};

struct GridErrors {
  std::size_t skipped = 0;  ///< points the model does not know
  std::string skip_reason;
  std::size_t outside = 0;  ///< beyond the recorded range
  /// All rows; inside and outside the recorded range; measured peak below twice the bytes live before, and
  /// not (below, the state of the process sets the peak and not the step).
  std::vector<RowErrors> rows;
  std::vector<double> times;         ///< of points that did not give the law
  std::vector<double> fitted_times;  ///< of those that did
  std::size_t outcomes[2][2] = {};   ///< [measured][predicted] out of memory
};

/// `predictions` are those of `replay_grid` for `grid`.
GridErrors grid_errors(const MeasuredGrid& grid, const std::vector<GridPrediction>& predictions);

/// The JSON of vramlab predict --against.
Json grid_errors_json(const GridErrors& errors);

}  // namespace vramlab
