// A metric is one row: its name, what it means, and what computes it from a result of its kind. Documents,
// tables, reports, the names that expectations know and `vramlab metrics` come from the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/json.hpp"

namespace vramlab {

/// Which way a metric is better, where one can say so.
enum class Better : std::uint8_t { neither, more, less };

/// "more", "less" or "".
std::string_view better_name(Better better);

/// What a figure can be, whatever happens.
struct ValueRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

/// A figure that is 1 or 0.
inline constexpr ValueRange kTruth{0, 1};

/// A share of reserved bytes: above 1 only by the rounding of a limit up to whole pages.
inline constexpr ValueRange kReservedShare{0, 1.0 + 0x1p-20};

/// What one metric means.
struct MetricDescription {
  std::string name;   ///< as in JSON and in expectations
  std::string title;  ///< short, for the head of a column
  std::string unit;   ///< "count", "share", "bytes", "s", "1/s", "h" or "score"
  Better better = Better::neither;
  std::string about;      ///< one sentence without its full stop
  std::string formula{};  ///< in names of other metrics and of the trace; empty if `about` says it all
  std::optional<ValueRange> range{};  ///< where it is not from 0 on, and of a share from 0 to 1

  [[nodiscard]] ValueRange values() const;
};

/// The metrics of one kind of scenario, in the order of its results.
using MetricTable = std::vector<MetricDescription>;

/// One metric of a kind whose results are known by `Facts`.
template <class Facts>
struct MetricRow : MetricDescription {
  /// Empty where the result has no such figure at all (no regret without an oracle); NaN where the figure has
  /// no value (a mean of nothing).
  std::function<std::optional<double>(const Facts&)> of;
};

/// One figure with its name.
struct Metric {
  std::string name;
  double value = 0;
};

/// The figures of one policy's run, where nothing else of it is needed.
struct LabelledFigures {
  std::string label;
  std::vector<Metric> metrics;
};

/// The same with what else is known of the policy.
struct PolicyFigures : LabelledFigures {
  std::string policy;   ///< name in the registry, or "oracle"
  std::string profile;  ///< empty if it has none
};

/// The figures that `facts` have, in the order of the rows.
template <class Facts>
std::vector<Metric> measure(const std::vector<MetricRow<Facts>>& rows, const Facts& facts) {
  std::vector<Metric> metrics;
  for (const MetricRow<Facts>& row : rows) {
    if (const std::optional<double> value = row.of(facts)) metrics.push_back({row.name, *value});
  }
  return metrics;
}

/// What the rows mean.
template <class Facts>
MetricTable table_of(const std::vector<MetricRow<Facts>>& rows) {
  return {rows.begin(), rows.end()};
}

/// The names of all metrics of `table`.
std::vector<std::string> names_of(const MetricTable& table);

/// The value called `name`; empty if there is none.
std::optional<double> find_metric(const std::vector<Metric>& metrics, std::string_view name);

/// A figure that is not there, in a table.
inline constexpr const char* kNoFigure = "-";

/// `value` with this many digits behind the point, or kNoFigure.
std::string fixed_text(double value, int digits);

/// "12.3 %" of a share, or kNoFigure.
std::string percent_text(double share);

/// The figures of one run by their names, as values and as cells of a table. It refers to `metrics`.
class Figures {
 public:
  explicit Figures(const std::vector<Metric>& metrics) : metrics_(&metrics) {}

  /// NaN if there is none.
  double operator[](std::string_view name) const;
  [[nodiscard]] std::string count(std::string_view name) const { return fixed_text((*this)[name], 0); }
  [[nodiscard]] std::string percent(std::string_view name) const { return percent_text((*this)[name]); }
  [[nodiscard]] std::string fixed(std::string_view name, int digits) const {
    return fixed_text((*this)[name], digits);
  }

 private:
  const std::vector<Metric>* metrics_;
};

/// A figure in JSON; whole numbers are written as such (53, not 53.0), what is not there as null.
Json number_json(double value);

/// Figures by their names.
Json figures_json(const std::vector<Metric>& figures);

}  // namespace vramlab
