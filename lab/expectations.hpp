// Holds the results of a scenario against what the scenario expects.
#pragma once

#include <string>

#include "lab/scenario.hpp"

namespace vramlab {

/// One expectation with what was found.
struct CheckedExpectation {
  std::string policy;
  std::string metric;  ///< the metric's name, or "final batch"
  double value = 0;
  std::string bound;  ///< what was allowed, in words: "= 0", ">= 1 and <= 2"
  bool ok = false;
};

/// `expectation` held against `value`; NaN stands for a value that is not there and never holds.
CheckedExpectation check_value(const Expectation& expectation, double value);

/// A number without needless digits: "53", "0.933", "1.25e+09"; "none" for what is not there.
std::string format_number(double value);

}  // namespace vramlab
