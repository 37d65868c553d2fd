#include "sim/memory/memory_stats.hpp"

#include <algorithm>
#include <utility>

namespace vramlab {
namespace {

using Named = std::pair<std::string, std::int64_t>;

constexpr std::pair<const char*, StatArray MemoryStats::*> kArrays[] = {
    {"allocation", &MemoryStats::allocation},
    {"segment", &MemoryStats::segment},
    {"active", &MemoryStats::active},
    {"inactive_split", &MemoryStats::inactive_split},
    {"allocated_bytes", &MemoryStats::allocated_bytes},
    {"reserved_bytes", &MemoryStats::reserved_bytes},
    {"active_bytes", &MemoryStats::active_bytes},
    {"inactive_split_bytes", &MemoryStats::inactive_split_bytes},
    {"requested_bytes", &MemoryStats::requested_bytes},
};
constexpr std::pair<const char*, Stat MemoryStats::*> kSingles[] = {
    {"oversize_allocations", &MemoryStats::oversize_allocations},
    {"oversize_segments", &MemoryStats::oversize_segments},
};
constexpr std::pair<const char*, std::int64_t MemoryStats::*> kScalars[] = {
    {"num_alloc_retries", &MemoryStats::num_alloc_retries},
    {"num_ooms", &MemoryStats::num_ooms},
    {"num_sync_all_streams", &MemoryStats::num_sync_all_streams},
    {"num_device_alloc", &MemoryStats::num_device_alloc},
    {"num_device_free", &MemoryStats::num_device_free},
    {"max_split_size", &MemoryStats::max_split_size},
};
constexpr const char* kClasses[] = {"all", "small_pool", "large_pool"};

void append(const std::string& name, const Stat& stat, std::vector<Named>& out) {
  out.emplace_back(name + ".current", stat.current);
  out.emplace_back(name + ".peak", stat.peak);
  out.emplace_back(name + ".allocated", stat.allocated);
  out.emplace_back(name + ".freed", stat.freed);
}

std::vector<Named> named_stats(const MemoryStats& stats) {
  std::vector<Named> all;
  for (const auto& [name, member] : kArrays) {
    for (std::size_t c = 0; c < std::size(kClasses); ++c) {
      append(std::string(name) + '.' + kClasses[c], (stats.*member).by_class[c], all);
    }
  }
  for (const auto& [name, member] : kSingles) append(name, stats.*member, all);
  for (const auto& [name, member] : kScalars) all.emplace_back(name, stats.*member);
  std::sort(all.begin(), all.end(), [](const Named& a, const Named& b) { return a.first < b.first; });
  return all;
}

}  // namespace

const std::vector<std::string>& stat_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (auto& [name, value] : named_stats({})) list.push_back(name);
    return list;
  }();
  return names;
}

std::vector<std::int64_t> stat_values(const MemoryStats& stats) {
  std::vector<std::int64_t> values;
  for (const auto& [name, value] : named_stats(stats)) values.push_back(value);
  return values;
}

}  // namespace vramlab
