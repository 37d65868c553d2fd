#include "trace/whole_history.hpp"

#include <iterator>
#include <map>
#include <string>

#include "sim/core/error.hpp"
#include "trace/trace_steps.hpp"

namespace vramlab {
namespace {

/// Address ranges; touching ones are one.
class RangeSet {
 public:
  /// False, and no change, if part of the range is there already, or if it is none.
  bool add(Address start, Bytes size) {
    if (size == 0 || start + size < start) return false;
    Address end = start + size;
    auto next = ranges_.lower_bound(start);
    if (next != ranges_.end() && next->first < end) return false;
    if (next != ranges_.end() && next->first == end) {
      end = next->second;
      next = ranges_.erase(next);
    }
    if (next != ranges_.begin()) {
      const auto previous = std::prev(next);
      if (previous->second > start) return false;
      if (previous->second == start) {
        previous->second = end;
        return true;
      }
    }
    ranges_[start] = end;
    return true;
  }

  /// False, and no change, unless the whole range is there.
  bool remove(Address start, Bytes size) {
    if (size == 0 || start + size < start) return false;
    const Address end = start + size;
    auto range = ranges_.upper_bound(start);
    if (range == ranges_.begin()) return false;
    --range;
    const auto [first, last] = *range;
    if (last < end) return false;
    ranges_.erase(range);
    if (first < start) ranges_[first] = start;
    if (end < last) ranges_[end] = last;
    return true;
  }

 private:
  std::map<Address, Address> ranges_;
};

void require_consistent(const std::vector<TraceEntry>& trace, const std::string& where) {
  RangeSet held;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const TraceEntry& entry = trace[i];
    if (is_acquisition(entry.action) && !held.add(entry.address, entry.size)) {
      throw InputError(where + '/' + std::to_string(i), "acquires memory that is held already.");
    }
    if (is_release(entry.action) && !held.remove(entry.address, entry.size)) {
      throw InputError(where + '/' + std::to_string(i), "releases memory that is not held.");
    }
  }
}

}  // namespace

std::int64_t reserved_at_start(const TorchSnapshot& snapshot, int device) {
  std::int64_t reserved = 0;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == device) reserved += static_cast<std::int64_t>(segment.total_size);
  }
  for (const TraceEntry& entry : snapshot.traces.at(static_cast<std::size_t>(device))) {
    if (is_acquisition(entry.action)) reserved -= static_cast<std::int64_t>(entry.size);
    if (is_release(entry.action)) reserved += static_cast<std::int64_t>(entry.size);
  }
  return reserved;
}

void require_history(const TorchSnapshot& snapshot, int device) {
  const auto index = static_cast<std::size_t>(device);
  if (device < 0 || index >= snapshot.traces.size() || snapshot.traces[index].empty()) {
    throw InputError("/device_traces/" + std::to_string(device),
                     "holds no history: recording was off, or the file has no such device.");
  }
}

void require_whole_history(const TorchSnapshot& snapshot, int device) {
  require_history(snapshot, device);
  const std::string where = "/device_traces/" + std::to_string(device);
  const auto index = static_cast<std::size_t>(device);
  const std::int64_t reserved = reserved_at_start(snapshot, device);
  if (reserved > 0) {
    throw InputError(where, "starts with " + format_bytes(static_cast<Bytes>(reserved)) +
                                " already reserved: recording began late, or the oldest entries are lost. "
                                "This needs the whole history; record from the start of the program, with "
                                "a max_entries that is large enough.");
  }
  if (reserved < 0) {
    throw InputError(where, "acquires " + format_bytes(static_cast<Bytes>(-reserved)) +
                                " more than it releases and holds at the end: some kinds of entries were "
                                "not recorded (skip_actions), or the segments are of another run.");
  }
  require_consistent(snapshot.traces[index], where);
}

}  // namespace vramlab
