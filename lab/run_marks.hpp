// Marks on a report's axis, merged where they are too many for a page; none is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vramlab {

/// What happened `count` times, at `first` the first time and at `last` the last.
struct RunMark {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::uint64_t count = 1;
  friend bool operator==(const RunMark&, const RunMark&) = default;
};

/// `marks`, ascending, where they are at most `most`. Else the span from the first to the last is cut into
/// `most` stretches, and those that begin in one become one: no place moves by more than a stretch, and the
/// counts add up to what they did.
std::vector<RunMark> merged_marks(const std::vector<RunMark>& marks, std::size_t most);

}  // namespace vramlab
