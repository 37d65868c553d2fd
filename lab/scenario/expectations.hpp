// Holds the figures of a scenario's runs against what the scenario expects, and rewrites what it expects.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/records/record.hpp"
#include "lab/scenario/file.hpp"

namespace vramlab {

/// Something that must hold for the run of one policy.
struct Expectation {
  enum class Subject : std::uint8_t {
    metric,
    final_value,  ///< of a parameter after the last step
    adjustment,   ///< iteration of a change, or with a name that parameter's value after it
    oom           ///< iteration of a failed step
  };
  std::string policy;  ///< a label, or "oracle"
  Subject subject = Subject::metric;
  std::string name;         ///< of the metric, or of the parameter
  std::int64_t number = 1;  ///< which change or failed step, from 1
  std::string mark;         ///< kind snapshot: the mark at which; empty = at the end
  std::string relative_to;  ///< label of the run whose figure this one is divided by; empty = none
  double share = 1;         ///< of the seeds' runs, how many must hold
  std::optional<double> min;
  std::optional<double> max;
  std::optional<double> equals;
  double tolerance = 0;  ///< around `equals`
};

/// The rows of what every expectation has: "min", "max", "equals", "tolerance", "relative_to".
std::vector<Row<Expectation>> bound_rows();

/// An expectation on a metric, without and with a share of seeds.
const Record<Expectation>& metric_expectation_table();
const Record<Expectation>& seeded_expectation_table();

/// Adds a problem where `policy` (under `key`: "policy" or "row") or `relative_to` are not among `labels`.
void require_expected_labels(const Expectation& expectation, const std::string& key,
                             const std::string& pointer, const std::vector<std::string>& labels,
                             FileProblems& problems);

/// Adds a problem where the bounds of bound_rows() do not go together.
void require_expected_bounds(const Expectation& expectation, const std::string& pointer,
                             FileProblems& problems);

/// The rules of expectations that are all on metrics: policies are of `labels`, metrics of `metrics`. With
/// `labels_are_complete` false a label may be that of a policy with another fault, and is not looked at.
void require_metric_expectations(const std::vector<Expectation>& expectations,
                                 const std::set<std::string>& labels, bool labels_are_complete,
                                 const std::vector<std::string>& metrics, FileProblems& problems);

/// Whether `expectation` holds for every value from `low` to `high`: then it states nothing. Of a figure that
/// is divided by another one, anything from 0 on can come out, or anything at all where `low` is below 0.
bool cannot_fail(const Expectation& expectation, double low, double high);

/// Something that a scenario declares and that no run of it came to.
struct Unmet {
  std::string where;  ///< JSON pointer: "/workload/phases/0"
  std::string why;    ///< "validation comes after every 1000 iterations, and the run has 30"

  friend bool operator==(const Unmet&, const Unmet&) = default;
};

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
