// What the page of --report shows, as JSON: one section a comparison, a queue, a sweep, a search or a
// history.
#pragma once

#include <string>

#include "lab/json.hpp"
#include "lab/kinds/epoch/monitor.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/page/segment_map.hpp"
#include "lab/page/thinning.hpp"
#include "lab/scenario/sweep_results.hpp"

namespace vramlab {

/// What stands above a section's charts.
struct SectionHead {
  std::string verdict;
  std::string head;  ///< one line on what was run
};

/// Training runs side by side: curves with at most 4,000 points each, every OOM, retry and change as a
/// mark or in one that says how many it stands for.
Json training_section(const TrainingScenario& scenario, const Comparison& comparison,
                      const SectionHead& head);

/// Epochs side by side: the same of every batch, with what was predicted. `histories` belong to `results`.
Json epoch_section(const EpochScenario& scenario, const std::vector<EpochResult>& results,
                   const std::vector<BatchHistory>& histories, const SectionHead& head);

/// Queues side by side: who was on which card when, how many waited. The runs must have kept their moments.
/// Of one policy at most 64 cards and some 4,000 stays, but every one that ran out of memory.
Json jobs_section(const JobsScenario& scenario, const std::vector<JobsResult>& results,
                  const SectionHead& head);

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

/// The ladder of trials of each searcher. `result` is that of `compare` for kind search: policies with
/// "label", "found", "batch", "edge_batch", "headroom_bytes", "reason" and "trials", or "buckets" of such.
Json search_section(const Json& result, const SectionHead& head, const std::string& description);

/// A curve as a list of [x, value].
Json curve_json(const std::vector<CurvePoint>& curve);

/// Marks of one kind and policy beyond this become fewer: at 8,000 those of a policy take half a MiB.
inline constexpr std::size_t kMostMarks = 8000;

/// A mark as [first, last, count].
Json mark_json(const RunMark& mark);

/// Marks, ascending, as a list of those, merged where there are more than kMostMarks.
Json marks_json(const std::vector<RunMark>& marks);

/// The metrics of `kind` for the page: name, title, unit, which way is better, meaning.
Json metrics_json(std::string_view kind);

/// The whole page. `sections` is a list of such sections. Throws InputError as html_page() does.
std::string report_page(const std::string& title, const Json& sections, std::string_view version);

}  // namespace vramlab
