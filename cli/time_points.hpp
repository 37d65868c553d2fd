// Which points of a grid give a model its step-time law, and which measure it.
#pragma once

#include "lab/measured_grid.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// Every other point in the order of the file, beginning with the first, gives the law.
constexpr bool gives_time_law(std::size_t row) { return row % 2 == 0; }

/// Fits the step-time law of `spec` to those points of `grid`.
void fit_times(RecordedSpec& spec, const MeasuredGrid& grid);

}  // namespace vramlab
