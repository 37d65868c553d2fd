#include "lab/scenario/expectations.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/json.hpp"
#include "lab/metric.hpp"

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
  using Subject = Expectation::Subject;
  std::string text = expectation.name;
  if (expectation.subject == Subject::final_value) text = "final " + expectation.name;
  if (expectation.subject == Subject::adjustment) {
    text = fmt::format("{} {} {}", expectation.name.empty() ? "iteration" : expectation.name,
                       expectation.name.empty() ? "of change" : "after change", expectation.number);
  }
  if (expectation.subject == Subject::oom) text = fmt::format("iteration of OOM {}", expectation.number);
  if (!expectation.mark.empty()) text += " at " + expectation.mark;
  if (!expectation.relative_to.empty()) text += " / that of " + expectation.relative_to;
  return text;
}

// A value that was true or false stays one, if it can.
std::string written(double value, const std::string& old) {
  if ((old == "true" || old == "false") && (value == 0 || value == 1)) return value != 0 ? "true" : "false";
  return number_json(value).dump();
}

std::vector<Row<Expectation>> metric_rows() {
  using E = Expectation;
  return {{"policy", &E::policy, "", 0, 0, "the label of a policy", kRequired},
          {"metric", &E::name, "", 0, 0, "a metric of the results", kRequired}};
}

}  // namespace

std::vector<Row<Expectation>> bound_rows() {
  using E = Expectation;
  return {
      {"min", as(FieldKind::bound, &E::min), "", 0, 0, "the value must not be below it"},
      {"max", as(FieldKind::bound, &E::max), "", 0, 0, "the value must not be above it"},
      {"equals", as(FieldKind::bound, &E::equals), "", 0, 0, "the value must be this"},
      {"tolerance", &E::tolerance, "", 0, 1e18, "how far from `equals` it may be"},
      {"relative_to", &E::relative_to, "", 0, 0,
       "label of another run: the value is divided by the same figure of that one"},
  };
}

const Record<Expectation>& metric_expectation_table() {
  static const Record<Expectation> table{joined<Expectation>(metric_rows(), bound_rows())};
  return table;
}

const Record<Expectation>& seeded_expectation_table() {
  static const Record<Expectation> table{joined<Expectation>(
      metric_rows(), bound_rows(),
      std::vector<Row<Expectation>>{{"share", &Expectation::share, "", 0.001, 1,
                                     "with `seeds`: share of the runs in which it must hold"}})};
  return table;
}

void require_expected_labels(const Expectation& expectation, const std::string& key,
                             const std::string& pointer, const std::vector<std::string>& labels,
                             FileProblems& problems) {
  const auto require = [&](const std::string& name, const std::string& label) {
    if (std::find(labels.begin(), labels.end(), label) != labels.end()) return;
    problems.add(pointer + "/" + name,
                 "no " + key + " is labelled \"" + label + "\"." + suggest_name(label, labels));
  };
  require(key, expectation.policy);
  if (!expectation.relative_to.empty()) require("relative_to", expectation.relative_to);
}

void require_expected_bounds(const Expectation& expectation, const std::string& pointer,
                             FileProblems& problems) {
  if (!expectation.min && !expectation.max && !expectation.equals) {
    problems.add(pointer, "nothing is expected: give \"min\", \"max\" or \"equals\".");
  }
  if (expectation.tolerance > 0 && !expectation.equals) {
    problems.add(pointer + "/tolerance", "goes with \"equals\", which is not given.");
  }
  if (expectation.min && expectation.max && *expectation.min > *expectation.max) {
    problems.add(pointer, "\"min\" is above \"max\": nothing can hold.");
  }
}

void require_metric_expectations(const std::vector<Expectation>& expectations,
                                 const std::set<std::string>& labels, bool labels_are_complete,
                                 const std::vector<std::string>& metrics, FileProblems& problems) {
  for (std::size_t i = 0; i < expectations.size(); ++i) {
    const Expectation& expectation = expectations[i];
    const std::string pointer = "/expect/" + std::to_string(i);
    if (labels_are_complete) {
      require_expected_labels(expectation, "policy", pointer, {labels.begin(), labels.end()}, problems);
    }
    if (std::find(metrics.begin(), metrics.end(), expectation.name) == metrics.end()) {
      problems.add(pointer + "/metric",
                   "\"" + expectation.name + "\" is not a metric." + suggest_name(expectation.name, metrics));
    }
    require_expected_bounds(expectation, pointer, problems);
  }
}

bool cannot_fail(const Expectation& expectation, double low, double high) {
  if (!expectation.relative_to.empty()) {
    low = low >= 0 ? 0 : -HUGE_VAL;
    high = HUGE_VAL;
  }
  return holds(expectation, low) && holds(expectation, high);
}

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

UpdatedText updated_expectations(const std::string& text, const std::vector<Expectation>& expectations,
                                 const std::vector<CheckedExpectation>& checked) {
  UpdatedText updated{text, {}};
  for (std::size_t i = 0; i < expectations.size(); ++i) {
    const Expectation& expected = expectations[i];
    const CheckedExpectation& found = checked[i];
    const bool broken_bound = (expected.min && !(found.value >= *expected.min)) ||
                              (expected.max && !(found.value <= *expected.max));
    if (found.ok || !expected.equals || broken_bound || !std::isfinite(found.value) || found.seeds > 1 ||
        holds(expected, found.value)) {  // that one fails for another reason
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
