#include <algorithm>
#include <cmath>

#include "lab/kinds/snapshot/spec.hpp"

namespace vramlab {
namespace {

using enum Better;

/// Where a figure is asked for: of the whole row, at a mark of the program.
enum class Where : std::uint8_t { end = 1, mark = 2, both = 3 };

/// A figure is computed where `vramlab whatif` writes it (lab/whatif/view.cpp), under the same name.
struct PlacedMetric : MetricDescription {
  Where where = Where::end;

  [[nodiscard]] bool is_at(Where place) const { return where == place || where == Where::both; }
};

// A row is the recorded program on one card under one setting. Behind the row's figures are those that only
// a mark has.
const std::vector<PlacedMetric>& rows() {
  static const std::vector<PlacedMetric> rows{
      {{"context_bytes", "context", "bytes", neither, "what the CUDA context takes of the card"}},
      {{"context_assumed",
        "context assumed",
        "count",
        neither,
        "1 if nobody measured that on this card",
        {},
        kTruth}},
      {{"others_bytes", "others", "bytes", neither, "what other processes hold of the card"}},
      {{"usable_bytes", "usable", "bytes", neither,
        "what the card has for the program; a limit may lie below",
        "capacity_bytes − context_bytes − what others hold"}},
      {{"fits",
        "fits",
        "count",
        more,
        "1 if no allocation of the recording fails, whether it succeeded there or not; none where the "
        "recording "
        "does not tell all of the program",
        {},
        kTruth}},
      {{"lower_bound",
        "lower bound",
        "count",
        neither,
        "1 if the file itself shows more reserved than the replay of its history",
        {},
        kTruth}},
      {{"failed_in_recording",
        "failed in recording",
        "count",
        neither,
        "1 for settings and card of a recording in which allocations failed",
        {},
        kTruth}},
      {{"ooms", "OOMs", "count", less,
        "allocations of the program that failed; at a mark what `allocator_ooms` was there"},
       Where::both},
      {{"allocator_ooms", "allocator OOMs", "count", less, "allocations the allocator refused"}},
      {{"oom_rejections", "OOM rejections", "count", less,
        "allocations that `throw_on_cudamalloc_oom` rejected; at a mark, until then"},
       Where::both},
      {{"retries", "retries", "count", less,
        "allocations that first had to release the whole cache; at a mark, until then"},
       Where::both},
      {{"unreplayed_attempts", "not replayed", "count", neither,
        "allocations that failed in the recording; they are not replayed"}},
      {{"attempts_that_would_succeed", "would succeed", "count", more,
        "those of them that would succeed here"}},
      {{"peak_allocated_bytes", "peak allocated", "bytes", less,
        "highest allocated bytes since the program's last reset of its peaks; at a mark, until then"},
       Where::both},
      {{"peak_reserved_bytes", "peak reserved", "bytes", less,
        "highest reserved bytes since the last reset; at a mark, until then"},
       Where::both},
      {{"peak_requested_bytes", "peak requested", "bytes", neither,
        "highest sum of sizes as requested, before rounding, since the last reset; at a mark, until then"},
       Where::both},
      {{"highest_allocated_bytes", "highest allocated", "bytes", less,
        "highest allocated bytes of the whole program, resets or not"}},
      {{"highest_reserved_bytes", "highest reserved", "bytes", less,
        "highest reserved bytes of the whole program, resets or not"}},
      {{"end_allocated_bytes", "allocated at end", "bytes", neither, "allocated bytes at the end"}},
      {{"end_reserved_bytes", "reserved at end", "bytes", less, "reserved bytes at the end"}},
      {{"segments", "segments", "count", neither, "segments held at the end; at a mark, there"}, Where::both},
      {{"device_allocs", "device allocs", "count", less,
        "times the driver gave a segment, or mapped pages into one; at a mark, until then"},
       Where::both},
      {{"device_frees", "device frees", "count", less,
        "times the driver took a segment back, or unmapped pages of one; at a mark, until then"},
       Where::both},
      {{"driver_time_s", "driver time", "s", less, "estimated time of all calls of the driver"}},
      {{"fragmentation", "idle at peak", "share", less,
        "share of the reserved bytes that was not in use when their peak was first reached",
        "1 − active / reserved"}},
      {{"smallest_usable_bytes", "smallest usable", "bytes", less,
        "the smallest `usable_bytes`, or limit where there is one, with which the program fits; none "
        "where it was not looked for"}},
      {{"smallest_without_retry_bytes", "smallest without retry", "bytes", less,
        "the smallest with which it fits and nothing has to release the cache"}},
      {{"device", "device", "count", neither, "number of the recorded card"}},
      {{"allocated_bytes", "allocated", "bytes", neither, "at a mark: allocated bytes there"}, Where::mark},
      {{"reserved_bytes", "reserved", "bytes", neither, "at a mark: reserved bytes there"}, Where::mark},
      {{"requested_bytes", "requested", "bytes", neither,
        "at a mark: sum of the sizes as requested of what is allocated there"},
       Where::mark},
      {{"active_bytes", "active", "bytes", neither,
        "at a mark: allocated bytes there, and those freed that another stream still uses"},
       Where::mark},
      {{"inactive_split_bytes", "inactive split", "bytes", less,
        "at a mark: free bytes there in segments of which a part is in use"},
       Where::mark},
      {{"inactive_split_blocks", "inactive split blocks", "count", less,
        "at a mark: how many free blocks there lie in segments of which a part is in use"},
       Where::mark},
      {{"active_blocks", "active blocks", "count", neither,
        "at a mark: blocks in use there, and those freed that another stream still uses"},
       Where::mark},
      {{"oversize_blocks", "oversize blocks", "count", neither,
        "at a mark: blocks in use there of at least `max_split_size_mb`"},
       Where::mark},
  };
  return rows;
}

std::vector<std::string> names_at(Where place) {
  std::vector<std::string> names;
  for (const PlacedMetric& row : rows()) {
    if (row.is_at(place)) names.push_back(row.name);
  }
  return names;
}

// Figures are numbers, or true or false, or null where there is none.
double json_figure(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end() || !(found->is_number() || found->is_boolean())) return std::nan("");
  return bound_value(*found);
}

}  // namespace

const MetricTable& snapshot_metric_table() {
  static const MetricTable table{rows().begin(), rows().end()};
  return table;
}

std::vector<std::string> snapshot_metric_names() { return names_at(Where::end); }

std::vector<std::string> snapshot_mark_metric_names() { return names_at(Where::mark); }

std::vector<Metric> snapshot_metrics(const Json& row) {
  std::vector<Metric> metrics;
  for (const std::string& name : snapshot_metric_names()) metrics.push_back({name, json_figure(row, name)});
  return metrics;
}

double snapshot_figure(const SnapshotResult& result, const std::string& name, const std::string& mark) {
  if (mark.empty()) return json_figure(result.json, name);
  for (const Json& one : result.json["marks"]) {  // one that several have: the first
    if (one["text"] == mark) return json_figure(one, name);
  }
  return std::nan("");  // the program ended before it
}

}  // namespace vramlab
