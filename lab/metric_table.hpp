// Every metric, defined once: documents, tables, reports and `vramlab metrics` come from here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vramlab {

/// Which way a metric is better, where one can say so.
enum class Better : std::uint8_t { neither, more, less };

/// What one metric means.
struct MetricDescription {
  std::string name;   ///< as in JSON and in expectations
  std::string title;  ///< short, for the head of a column
  std::string unit;   ///< "count", "share", "bytes", "s", "1/s", "h" or "score"
  Better better = Better::neither;
  std::string about;    ///< one sentence without its full stop
  std::string formula;  ///< in the names of the other metrics and of the trace; empty if `about` says it all
};

/// The metrics of one kind of scenario.
struct MetricFamily {
  std::string kind;  ///< "training", "jobs", …
  std::vector<MetricDescription> metrics;
};

/// All of them, in the order of the documents.
const std::vector<MetricFamily>& metric_families();

/// The metrics of scenarios of `kind`, in the order of results. Throws InternalError for an unknown kind.
const std::vector<MetricDescription>& metrics_of(std::string_view kind);

/// "more", "less" or "".
std::string_view better_name(Better better);

}  // namespace vramlab
