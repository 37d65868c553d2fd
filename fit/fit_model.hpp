// From recorded steps to a workload model, and how well it describes them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fit/size_laws.hpp"
#include "fit/step_record.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// How well the sizes of the recorded allocations are described. Bytes are requested bytes summed over all
/// recorded shapes.
struct FitResiduals {
  std::size_t tensors = 0;       ///< allocations of the step, each counted once over all shapes
  std::size_t exact = 0;         ///< a form that gives every recorded size to the byte
  std::size_t borrowed = 0;      ///< seen at one shape only, with the form of another of equal size
  std::size_t by_algorithm = 0;  ///< a form for each of some algorithms; the nearest shape decides
  std::size_t interpolated = 0;  ///< no form: sizes between recorded ones are interpolated
  std::size_t single = 0;        ///< no form and seen at one shape only
  Bytes bytes = 0;
  Bytes exact_bytes = 0;
  Bytes borrowed_bytes = 0;
  Bytes by_algorithm_bytes = 0;
  Bytes interpolated_bytes = 0;
  Bytes single_bytes = 0;
};

/// A family of allocations without an exact form, for people: where the model is weakest.
struct InexactFamily {
  std::vector<Bytes> sizes;  ///< by shape; 0 = not seen there
  std::size_t tensors = 0;   ///< how many have these sizes
};

/// Counts them for the allocations of `program`, whose sizes have `laws`; `inexact` gets the families without
/// an exact form, most bytes first.
FitResiduals count_residuals(const UnionProgram& program, const std::vector<ShapeProgram>& shapes,
                             const SizeLaws& laws, std::vector<InexactFamily>& inexact);

// What a fitted model guesses, and what to record so that it knows.

/// Where the program changes between two recorded shapes, the place is a guess.
void warn_of_thresholds(const RecordedSpec& spec, std::vector<std::string>& warnings);

/// Sizes without a form follow the algorithms of a library, which change with the shape.
void warn_of_workspaces(const RecordedSpec& spec, const FitResiduals& residuals,
                        std::vector<std::string>& warnings);

// From recorded steps to a workload model.

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
