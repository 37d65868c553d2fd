// Holds the figures of a scenario's runs against what the scenario expects, and rewrites what it expects.
#pragma once

#include <string>
#include <vector>

#include "lab/kinds/training/spec.hpp"

namespace vramlab {

/// One expectation with what was found.
struct CheckedExpectation {
  std::string policy;
  std::string metric;  ///< what the value is: "ooms", "final batch", "iteration of OOM 1"
  double value = 0;    ///< of several seeds the share of runs in which it held
  std::string bound;   ///< what was allowed, in words: "= 0", ">= 1 and <= 2"
  bool ok = false;
  std::size_t seeds = 1;
  std::vector<std::string> around{};  ///< where it does not hold: the trace around it, line by line
};

/// `expectation` held against `value`; NaN stands for a value that is not there and never holds.
CheckedExpectation check_value(const Expectation& expectation, double value);

/// The same for the values of several seeds: it holds where it does in the share of runs that is asked for.
CheckedExpectation check_values(const Expectation& expectation, const std::vector<double>& values);

/// `value` over `base`; 1 where both are 0.
double ratio(double value, double base);

/// A number without needless digits: "53", "0.933", "1.25e+09"; "none" for what is not there. Whole numbers
/// are written in full.
std::string format_number(double value);

// New exact values for the expectations of a scenario file, with the rest of its text as it was.

/// A scenario's text with new values, and what was changed.
struct UpdatedText {
  std::string text;
  std::vector<std::string> changes;  ///< "fixed ooms: 0 -> 2"
};

/// Puts the value found in place of every "equals" that does not hold. Expectations with "min" or "max" that
/// break, over several seeds, or without a value stay: they are bounds, not records.
UpdatedText updated_expectations(const std::string& text, const std::vector<Expectation>& expectations,
                                 const std::vector<CheckedExpectation>& checked);

}  // namespace vramlab
