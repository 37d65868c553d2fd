#include "sim/memory/memory_stats.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vramlab {
namespace {

constexpr std::pair<const char*, Counter MemoryStats::*> kSingles[] = {
    {"oversize_allocations", &MemoryStats::oversize_allocations},
    {"oversize_segments", &MemoryStats::oversize_segments},
};
constexpr std::pair<const char*, std::int64_t MemoryStats::*> kEvents[] = {
    {"num_alloc_retries", &MemoryStats::num_alloc_retries},
    {"num_ooms", &MemoryStats::num_ooms},
    {"num_sync_all_streams", &MemoryStats::num_sync_all_streams},
    {"num_device_alloc", &MemoryStats::num_device_alloc},
    {"num_device_free", &MemoryStats::num_device_free},
};
constexpr const char* kClasses[] = {"all", "small_pool", "large_pool"};

// Names and values in the order of the tables above; `visit` sees both side by side.
template <class Visit>
void for_each_value(const MemoryStats& stats, const Visit& visit) {
  const auto fields = [&visit](const char* name, const char* kind, const Stat& stat) {
    visit(name, kind, "current", stat.current);
    visit(name, kind, "peak", stat.peak);
    visit(name, kind, "allocated", stat.allocated);
    visit(name, kind, "freed", stat.freed);
  };
  for (const auto& [name, member] : kStatArrays) {
    for (std::size_t c = 0; c < std::size(kClasses); ++c)
      fields(name, kClasses[c], (stats.*member)[StatClass{static_cast<std::uint8_t>(c)}]);
  }
  for (const auto& [name, member] : kSingles) fields(name, "", (stats.*member).value());
  for (const auto& [name, member] : kEvents) visit(name, "", "", stats.*member);
  visit("max_split_size", "", "", stats.max_split_size);
}

std::vector<std::string> unsorted_names() {
  std::vector<std::string> names;
  for_each_value(
      {}, [&](const std::string& name, const std::string& kind, const std::string& field, std::int64_t) {
        names.push_back(name + (kind.empty() ? "" : '.' + kind) + (field.empty() ? "" : '.' + field));
      });
  return names;
}

// Where each value of the tables goes in the sorted list.
std::vector<std::size_t> sorted_positions() {
  std::vector<std::size_t> positions;
  for (const std::string& name : unsorted_names()) {
    const auto place = std::lower_bound(stat_names().begin(), stat_names().end(), name);
    positions.push_back(static_cast<std::size_t>(place - stat_names().begin()));
  }
  return positions;
}

}  // namespace

void MemoryStats::reset_peaks() {
  for (const auto& [name, member] : kStatArrays) (this->*member).reset_peak();
  for (const auto& [name, member] : kSingles) (this->*member).reset_peak();
}

void MemoryStats::reset_sums() {
  for (const auto& [name, member] : kStatArrays) (this->*member).reset_sums();
  for (const auto& [name, member] : kSingles) (this->*member).reset_sums();
  for (const auto& [name, member] : kEvents) this->*member = 0;
  num_oom_rejections = 0;
}

void MemoryStats::repeat(const MemoryStats& before, const MemoryStats& after) {
  for (const auto& [name, member] : kStatArrays) (this->*member).repeat(before.*member, after.*member);
  for (const auto& [name, member] : kSingles) (this->*member).repeat(before.*member, after.*member);
  for (const auto& [name, member] : kEvents) this->*member += after.*member - before.*member;
  num_oom_rejections += after.num_oom_rejections - before.num_oom_rejections;
}

const std::vector<std::string>& stat_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = unsorted_names();
    std::sort(list.begin(), list.end());
    return list;
  }();
  return names;
}

std::vector<std::int64_t> stat_values(const MemoryStats& stats) {
  static const std::vector<std::size_t> positions = sorted_positions();
  std::vector<std::int64_t> values(positions.size());
  std::size_t next = 0;
  for_each_value(stats, [&](const char*, const char*, const char*, std::int64_t value) {
    values[positions[next++]] = value;
  });
  return values;
}

}  // namespace vramlab
