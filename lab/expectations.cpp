#include "lab/expectations.hpp"

#include <cmath>

#include <fmt/format.h>

namespace vramlab {
namespace {

bool holds(const Expectation& expectation, double value) {
  if (std::isnan(value)) return false;
  if (expectation.min && value < *expectation.min) return false;
  if (expectation.max && value > *expectation.max) return false;
  return !expectation.equals || std::abs(value - *expectation.equals) <= expectation.tolerance;
}

std::string bound_in_words(const Expectation& expectation) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " and ") + part; };
  if (expectation.min) add(">= " + format_number(*expectation.min));
  if (expectation.max) add("<= " + format_number(*expectation.max));
  if (expectation.equals) {
    add("= " + format_number(*expectation.equals) +
        (expectation.tolerance > 0 ? " ± " + format_number(expectation.tolerance) : ""));
  }
  return text;
}

}  // namespace

CheckedExpectation check_value(const Expectation& expectation, double value) {
  const bool is_final = expectation.subject == Expectation::Subject::final_value;
  return {expectation.policy, (is_final ? "final " : "") + expectation.name, value,
          bound_in_words(expectation), holds(expectation, value)};
}

std::string format_number(double value) { return std::isnan(value) ? "none" : fmt::format("{:.6g}", value); }

}  // namespace vramlab
