#include "sim/workload/step_cache.hpp"

#include <algorithm>
#include <array>

namespace vramlab {
namespace {

constexpr std::array kArrays{&MemoryStats::allocation,      &MemoryStats::segment,
                             &MemoryStats::active,          &MemoryStats::inactive_split,
                             &MemoryStats::allocated_bytes, &MemoryStats::reserved_bytes,
                             &MemoryStats::active_bytes,    &MemoryStats::inactive_split_bytes,
                             &MemoryStats::requested_bytes};
constexpr std::array kSingles{&MemoryStats::oversize_allocations, &MemoryStats::oversize_segments};
constexpr std::array kTotals{&MemoryStats::num_alloc_retries, &MemoryStats::num_ooms,
                             &MemoryStats::num_sync_all_streams, &MemoryStats::num_device_alloc,
                             &MemoryStats::num_device_free};

void apply_change(const Stat& before, const Stat& after, Stat& stat) {
  stat.peak = std::max(stat.peak, stat.current + (after.peak - before.current));
  stat.current += after.current - before.current;
  stat.allocated += after.allocated - before.allocated;
  stat.freed += after.freed - before.freed;
}

}  // namespace

void apply_change(const StatsChange& change, MemoryStats& stats) {
  for (const auto array : kArrays) {
    (stats.*array).repeat(change.before.*array, change.after.*array);
  }
  for (const auto single : kSingles) apply_change(change.before.*single, change.after.*single, stats.*single);
  for (const auto total : kTotals) stats.*total += change.after.*total - change.before.*total;
}

void reset_peaks(MemoryStats& stats) {
  for (const auto array : kArrays) (stats.*array).reset_peak();
  for (const auto single : kSingles) (stats.*single).reset_peak();
}

std::size_t StepCache::HashWords::operator()(const std::vector<std::uint64_t>& words) const {
  std::uint64_t hash = words.size();
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;  // multiplicative hashing with the golden ratio
    hash ^= hash >> 32;
  }
  return hash;
}

StepCache::StateId StepCache::enter(const SimulatedProcess& process) {
  const auto [entry, fresh] =
      ids_.try_emplace(process.canonical_state(), static_cast<StateId>(nodes_.size()));
  if (fresh) nodes_.push_back({process.save(), {}});
  return entry->second;
}

const StepCache::Edge* StepCache::find(StateId from, const Action& action) const {
  const auto edge = nodes_[from].edges.find(action);
  return edge == nodes_[from].edges.end() ? nullptr : &edge->second;
}

void StepCache::insert(StateId from, const Action& action, Edge edge) {
  nodes_[from].edges.insert_or_assign(action, std::move(edge));
}

void StepCache::clear() {
  nodes_.clear();
  ids_.clear();
}

}  // namespace vramlab
