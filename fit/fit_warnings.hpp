// What a fitted model guesses, and what to record so that it knows.
#pragma once

#include <string>
#include <vector>

#include "fit/fit_residuals.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// Where the program changes between two recorded shapes, the place is a guess.
void warn_of_thresholds(const RecordedSpec& spec, std::vector<std::string>& warnings);

/// Sizes without a form follow the algorithms of a library, which change with the shape.
void warn_of_workspaces(const RecordedSpec& spec, const FitResiduals& residuals,
                        std::vector<std::string>& warnings);

}  // namespace vramlab
