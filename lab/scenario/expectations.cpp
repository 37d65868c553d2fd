#include "lab/scenario/expectations.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/json.hpp"
#include "lab/kinds/training/view.hpp"

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

std::string figure_in_words(const Expectation& expectation) {
  std::string text = expectation.name;
  switch (expectation.subject) {
    case Expectation::Subject::metric:
      break;
    case Expectation::Subject::final_value:
      text = "final " + expectation.name;
      break;
    case Expectation::Subject::adjustment:
      text = fmt::format("{} {} {}", expectation.name.empty() ? "iteration" : expectation.name,
                         expectation.name.empty() ? "of change" : "after change", expectation.number);
      break;
    case Expectation::Subject::oom:
      text = fmt::format("iteration of OOM {}", expectation.number);
      break;
  }
  if (!expectation.mark.empty()) text += " at " + expectation.mark;
  if (!expectation.relative_to.empty()) text += " / that of " + expectation.relative_to;
  return text;
}

}  // namespace

CheckedExpectation check_value(const Expectation& expectation, double value) {
  return {expectation.policy, figure_in_words(expectation), value, bound_in_words(expectation),
          holds(expectation, value)};
}

CheckedExpectation check_values(const Expectation& expectation, const std::vector<double>& values) {
  if (values.size() == 1) return check_value(expectation, values.front());
  const auto held =
      std::count_if(values.begin(), values.end(), [&](double value) { return holds(expectation, value); });
  CheckedExpectation checked = check_value(expectation, std::nan(""));
  checked.value = static_cast<double>(held) / static_cast<double>(values.size());
  checked.bound = fmt::format("share of {} seeds with {}, >= {}", values.size(), checked.bound,
                              format_number(expectation.share));
  checked.ok = checked.value >= expectation.share;
  checked.seeds = values.size();
  return checked;
}

double ratio(double value, double base) { return value == 0 && base == 0 ? 1 : value / base; }

std::string format_number(double value) {
  if (std::isnan(value)) return "none";
  const bool whole = value == std::floor(value) && std::abs(value) < 9007199254740992.0;  // 2^53
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.6g}", value);
}

namespace {

// A value that was true or false stays one, if it can.
std::string written(double value, const std::string& old) {
  if ((old == "true" || old == "false") && (value == 0 || value == 1)) return value != 0 ? "true" : "false";
  return number_json(value).dump();
}

}  // namespace

UpdatedText updated_expectations(const std::string& text, const std::vector<Expectation>& expectations,
                                 const std::vector<CheckedExpectation>& checked) {
  UpdatedText updated{text, {}};
  for (std::size_t i = 0; i < expectations.size(); ++i) {
    const Expectation& expected = expectations[i];
    const CheckedExpectation& found = checked[i];
    const bool broken_bound = (expected.min && !(found.value >= *expected.min)) ||
                              (expected.max && !(found.value <= *expected.max));
    if (found.ok || !expected.equals || broken_bound || !std::isfinite(found.value) || found.seeds > 1) {
      continue;
    }
    const auto place = json_place(updated.text, {"expect", std::to_string(i), "equals"});
    if (!place) continue;
    const std::string old = updated.text.substr(place->begin, place->end - place->begin);
    const std::string now = written(found.value, old);
    updated.text.replace(place->begin, place->end - place->begin, now);
    updated.changes.push_back(found.policy + " " + found.metric + ": " + old + " -> " + now);
  }
  return updated;
}

}  // namespace vramlab
