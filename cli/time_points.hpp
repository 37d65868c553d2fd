// The step-time law of a model from a grid of timed points.
#pragma once

#include "lab/model/measured_grid.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// Fits the step-time law of `spec` to every other point of `grid` (lab/model/measured_grid.hpp).
void fit_times(RecordedSpec& spec, const MeasuredGrid& grid);

}  // namespace vramlab
