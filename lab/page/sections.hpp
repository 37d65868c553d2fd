// What the page of --report shows, as JSON: what sections of every kind are made of, and those of sweeps and
// histories.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/json.hpp"
#include "lab/metric.hpp"
#include "lab/page/drawing.hpp"
#include "lab/scenario/sweep_results.hpp"

namespace vramlab {

/// What stands above a section's charts.
struct SectionHead {
  std::string verdict;
  std::string head;  ///< one line on what was run
};

/// What every section begins with.
Json begun_section(const std::string& kind, const std::string& title, const SectionHead& head);

/// What a sweep is of.
struct SweepTitle {
  std::string name;
  std::string description;
  std::string kind;    ///< of the scenario: whose metrics
  std::string metric;  ///< shown first
};

/// Every finished run of a sweep, for a heat map over any two of its axes.
Json sweep_section(const Sweep& sweep, const SweepResults& results, const SweepTitle& title,
                   const SectionHead& head);

/// A map of the address space over the entries of a history.
Json segments_section(const SegmentMap& map, const std::string& title, const SectionHead& head);

/// A curve as a list of [x, value].
Json curve_json(const std::vector<CurvePoint>& curve);

/// Points of one curve over a run; some two a pixel of a wide screen.
inline constexpr std::size_t kMostPoints = 4000;

/// The curve of `value(record)` over the records of a run, each at `record.*place`.
template <class Record, class Value>
Json run_curve(const std::vector<Record>& records, std::int64_t Record::*place, const Value& value) {
  const std::size_t stride = curve_stride(records.size(), kMostPoints);
  return curve_json(thinned_curve(records.size(), stride, [&](std::size_t i) {
    return CurvePoint{records[i].*place, static_cast<std::int64_t>(std::invoke(value, records[i]))};
  }));
}

/// Marks of one kind and policy beyond this become fewer: at 8,000 those of a policy take half a MiB.
inline constexpr std::size_t kMostMarks = 8000;

/// A mark as [first, last, count].
Json mark_json(const RunMark& mark);

/// Marks, ascending, as a list of those, merged where there are more than kMostMarks.
Json marks_json(const std::vector<RunMark>& marks);

/// A mark at the place of each record of a run that `is`.
template <class Record, class Is>
Json run_marks(const std::vector<Record>& records, std::int64_t Record::*place, const Is& is) {
  std::vector<RunMark> marks;
  for (const Record& record : records) {
    if (std::invoke(is, record)) marks.push_back({record.*place, record.*place, 1});
  }
  return marks_json(marks);
}

/// Metrics for the page: name, title, unit, which way is better, meaning.
Json metrics_json(const MetricTable& metrics);

/// The whole page. `sections` is a list of such sections. Throws InputError as html_page() does.
std::string report_page(const std::string& title, const Json& sections, std::string_view version);

}  // namespace vramlab
