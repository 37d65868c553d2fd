#include "plan/validator.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace vramlab {
namespace {

constexpr std::size_t kMostFaults = 20;
constexpr Bytes kHighest = std::numeric_limits<std::int64_t>::max();

std::string name_of(std::size_t buffer, const std::vector<std::string>& ids) {
  return ids.empty() ? std::to_string(buffer) : ids[buffer];
}

/// What lies in memory at one moment, by offset. Buffers that share a byte with one that is there are told of
/// and left out.
class Memory {
 public:
  Memory(const std::vector<Buffer>& buffers, const std::vector<Bytes>& offsets,
         const std::vector<std::string>& ids)
      : buffers_(buffers), offsets_(offsets), ids_(ids) {}

  void begin(std::size_t buffer, PlanCheck& check) {
    const Bytes end = offsets_[buffer] + buffers_[buffer].size;
    const auto above = here_.lower_bound(offsets_[buffer]);
    if (above != here_.end() && above->first < end) return tell(buffer, above->second, check);
    if (above != here_.begin()) {
      const std::size_t below = std::prev(above)->second;
      if (offsets_[below] + buffers_[below].size > offsets_[buffer]) return tell(buffer, below, check);
    }
    here_.emplace(offsets_[buffer], buffer);
  }

  void end(std::size_t buffer) {
    const auto found = here_.find(offsets_[buffer]);
    if (found != here_.end() && found->second == buffer) here_.erase(found);
  }

 private:
  void tell(std::size_t a, std::size_t b, PlanCheck& check) const {
    if (check.faults.size() >= kMostFaults) return;
    check.faults.push_back("buffers " + name_of(std::min(a, b), ids_) + " and " +
                           name_of(std::max(a, b), ids_) + " live at once and share memory");
  }

  const std::vector<Buffer>& buffers_;
  const std::vector<Bytes>& offsets_;
  const std::vector<std::string>& ids_;
  std::map<Bytes, std::size_t> here_;
};

std::vector<std::size_t> sorted_by(const std::vector<Buffer>& buffers, std::int64_t Buffer::*time) {
  std::vector<std::size_t> sorted(buffers.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].*time < buffers[b].*time; });
  return sorted;
}

}  // namespace

PlanCheck check_plan(const std::vector<Buffer>& buffers, const std::vector<Bytes>& offsets,
                     const std::vector<std::string>& ids) {
  PlanCheck check;
  if (offsets.size() != buffers.size()) {
    check.faults.push_back(std::to_string(offsets.size()) + " offsets for " + std::to_string(buffers.size()) +
                           " buffers");
    return check;
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const bool too_high = buffers[i].size > kHighest || offsets[i] > kHighest - buffers[i].size;
    if (!too_high && buffers[i].lower < buffers[i].upper) continue;
    check.faults.push_back("buffer " + name_of(i, ids) +
                           (too_high ? " ends above 2^63 - 1" : " does not end after it begins"));
    if (check.faults.size() >= kMostFaults) break;
  }
  if (!check.sound()) return check;

  const std::vector<std::size_t> begins = sorted_by(buffers, &Buffer::lower);
  const std::vector<std::size_t> ends = sorted_by(buffers, &Buffer::upper);
  Memory memory(buffers, offsets, ids);
  Bytes alive = 0;
  auto ending = ends.begin();
  for (const std::size_t buffer : begins) {
    for (; buffers[*ending].upper <= buffers[buffer].lower; ++ending) {
      memory.end(*ending);
      alive -= buffers[*ending].size;
    }
    if (buffers[buffer].size == 0) continue;
    alive += buffers[buffer].size;
    check.load = std::max(check.load, alive);
    check.top = std::max(check.top, offsets[buffer] + buffers[buffer].size);
    memory.begin(buffer, check);
  }
  return check;
}

}  // namespace vramlab
