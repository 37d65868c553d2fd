// Which parameters the recorded steps had, which of them moved, and what products of them sizes may follow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/recorded_spec.hpp"
#include "trace/marks_file.hpp"

namespace vramlab {

/// The variables of a model that is being fitted.
struct FitParameters {
  std::vector<Parameter> recorded;          ///< that moved, with the range recorded
  std::vector<RecordedVariable> variables;  ///< those first; then the fixed ones
  std::vector<Monomial> monomials;          ///< the number 1, then products that moved, lowest degree first
  std::vector<VariableValues> shapes;       ///< by shape

  /// Adds a variable that sizes inside loops may follow; products with it come behind all others.
  void add_loop_variable(RecordedVariable variable);

  /// Values of all monomials at a shape.
  [[nodiscard]] std::vector<std::int64_t> monomial_values(const VariableValues& variables_values) const;
};

/// Adds a warning if the recorded shapes do not tell 1, the parameters and the products of two of them apart;
/// `counters` are parameters that only say how often a loop goes round.
void warn_of_confusion(const FitParameters& fit, const std::vector<std::uint32_t>& counters,
                       std::vector<std::string>& warnings);

/// Reads them off the parameters of the recorded shapes. Adds warnings on parameters that never moved.
/// Throws InputError if the shapes do not all have the same parameters.
FitParameters fit_parameters(const std::vector<StepParameters>& shapes, std::vector<std::string>& warnings);

}  // namespace vramlab
