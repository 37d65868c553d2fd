// From recorded steps to a workload model.
#pragma once

#include <string>
#include <vector>

#include "fit/fit_residuals.hpp"
#include "fit/step_record.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

struct FittedModel {
  RecordedSpec spec;
  std::vector<std::string> shape_labels;
  FitResiduals residuals;
  std::vector<InexactFamily> inexact;  ///< most bytes first
  std::vector<std::string> warnings;   ///< what not to trust, and what to record
  std::size_t refusal_chains = 0;      ///< recorded chains of refusals; without any their length is assumed
};

/// Fits a model to the steps of all `runs`; the first gives building and the first step of a process.
/// Throws InputError if they are not steps of one program, or there is no settled step.
FittedModel fit_model(const std::vector<RecordedRun>& runs, const std::string& name);

}  // namespace vramlab
