#include "lab/run_marks.hpp"

#include <algorithm>

namespace vramlab {

std::vector<RunMark> merged_marks(const std::vector<RunMark>& marks, std::size_t most) {
  if (marks.size() <= most) return marks;
  const std::int64_t begin = marks.front().first;
  const auto stretches = static_cast<std::int64_t>(std::max<std::size_t>(most, 1));
  const std::int64_t stretch = (marks.back().first - begin) / stretches + 1;
  std::vector<RunMark> merged;
  for (const RunMark& mark : marks) {
    const bool together =
        !merged.empty() && (merged.back().first - begin) / stretch == (mark.first - begin) / stretch;
    if (together) {
      merged.back().last = std::max(merged.back().last, mark.last);
      merged.back().count += mark.count;
    } else {
      merged.push_back(mark);
    }
  }
  return merged;
}

}  // namespace vramlab
