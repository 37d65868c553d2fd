#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "recordings/input_file.hpp"
#include "recordings/jobs/job_lists.hpp"

namespace vramlab {
namespace {

constexpr std::array<std::pair<std::string_view, Bytes>, 5> kCards{
    {{"P100", 16_GiB}, {"V100M16", 16_GiB}, {"V100M32", 32_GiB}, {"T4", 16_GiB}, {"A10", 24_GiB}}};

/// The kinds of cards met so far, each a pool.
class Kinds {
 public:
  Kinds(OpenbTrace& trace, Bytes anonymous) : trace_(trace), anonymous_(anonymous) {}

  std::uint32_t pool_of(const CsvTable& nodes, std::size_t row) {
    const std::string name{nodes.text(row, "model")};
    const auto [entry, fresh] = ids_.try_emplace(name, static_cast<std::uint32_t>(ids_.size()));
    if (fresh) {
      if (ids_.size() > 64) nodes.wrong(row, "model", "is the 65th kind of card; 64 are the most.");
      trace_.cluster.pools.push_back({memory_of(name)});
    }
    return entry->second;
  }

  // "T4|A10": any of these kinds. A kind that no node has adds nothing.
  [[nodiscard]] PoolMask mask_of(std::string_view spec) const {
    if (spec.empty()) return kAnyPool;
    PoolMask mask = 0;
    while (!spec.empty()) {
      const std::size_t bar = std::min(spec.find('|'), spec.size());
      const auto kind = ids_.find(std::string(spec.substr(0, bar)));
      if (kind != ids_.end()) mask |= PoolMask{1} << kind->second;
      spec.remove_prefix(std::min(bar + 1, spec.size()));
    }
    return mask;
  }

 private:
  Bytes memory_of(const std::string& name) {
    for (const auto& [known, memory] : kCards) {
      if (known == name) return memory;
    }
    trace_.assumed.push_back(name);
    return anonymous_;
  }

  OpenbTrace& trace_;
  Bytes anonymous_;
  std::map<std::string, std::uint32_t> ids_;
};

void read_nodes(const CsvTable& table, Kinds& kinds, ClusterSetup& cluster) {
  CardId first = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto count = static_cast<std::uint32_t>(table.whole(row, "gpu", 0, 1024));
    if (count == 0) continue;
    cluster.nodes.push_back({kinds.pool_of(table, row), first, count});
    first += count;
  }
}

SimTime duration_of(const CsvTable& table, std::size_t row, OpenbTrace& trace) {
  const bool was_scheduled = !table.text(row, "scheduled_time").empty();
  if (!was_scheduled) ++trace.never_scheduled;
  const SimTime from = table.seconds(row, was_scheduled ? "scheduled_time" : "creation_time");
  const SimTime to = table.seconds(row, "deletion_time");
  if (to < from) table.wrong(row, "deletion_time", "is before the pod began.");
  if (to > from) return to - from;
  ++trace.without_duration;
  return std::chrono::seconds{1};
}

void read_pod(const CsvTable& table, std::size_t row, const Kinds& kinds, OpenbTrace& trace) {
  const auto cards = static_cast<std::int32_t>(table.whole(row, "num_gpu", 0, 1024));
  if (cards == 0) {
    ++trace.without_gpu;
    return;
  }
  JobSpec job;
  job.name = table.text(row, "name");
  job.arrival = table.seconds(row, "creation_time");
  job.demand.cards = cards;
  job.demand.share_milli = cards > 1 ? 1000 : table.whole(row, "gpu_milli", 1, 1000);
  job.demand.pools = kinds.mask_of(table.text(row, "gpu_spec", false));
  job.phases = {{.duration = duration_of(table, row, trace)}};
  trace.jobs.push_back(std::move(job));
}

}  // namespace

OpenbTrace read_openb(const std::filesystem::path& pods, const std::filesystem::path& nodes,
                      const OpenbOptions& options) {
  OpenbTrace trace;
  Kinds kinds{trace, options.anonymous_card};
  read_nodes(CsvTable{nodes}, kinds, trace.cluster);
  const CsvTable table{pods};
  trace.pods = table.rows();
  LineProblems problems;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    problems.guarded([&] { read_pod(table, row, kinds, trace); });
  }
  problems.throw_if_any(pods.string());
  return trace;
}

}  // namespace vramlab
