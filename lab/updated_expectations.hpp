// New exact values for the expectations of a scenario file, with the rest of its text as it was.
#pragma once

#include <string>
#include <vector>

#include "lab/expectations.hpp"

namespace vramlab {

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
