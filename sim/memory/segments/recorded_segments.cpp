#include "sim/memory/segments/recorded_segments.hpp"

#include "core/error.hpp"

namespace vramlab {

std::optional<Address> RecordedSegments::reserve(Bytes size) {
  if (!take(size)) return std::nullopt;
  Address base = place(segments_, next_symbolic_segment_, size);
  // A replay that went astray may be given the base of a segment it still holds.
  while (sizes_.count(base) > 0) base = place(segments_, next_symbolic_segment_, size);
  sizes_.emplace(base, size);
  return base;
}

void RecordedSegments::release(Address base) {
  const auto segment = sizes_.find(base);
  if (segment == sizes_.end()) throw InternalError("a segment is released that was not reserved");
  taken_ -= segment->second;
  sizes_.erase(segment);
}

Address RecordedSegments::reserve_range(Bytes size, Bytes) {
  return place(ranges_, next_symbolic_range_, size);
}

Address RecordedSegments::place(std::deque<Address>& supplied, Address& next_symbolic, Bytes size) {
  if (!supplied.empty()) {
    const Address base = supplied.front();
    supplied.pop_front();
    symbolic_.erase(base);
    return base;
  }
  const Address base = next_symbolic;
  next_symbolic += round_up(size, 2_MiB) + 2_MiB;  // a gap, so that no two ever touch
  symbolic_.insert(base);
  return base;
}

// R10.1, R10.2
bool RecordedSegments::take(Bytes size) {
  if (usable_ && size > *usable_ - taken_) return false;
  taken_ += size;
  return true;
}

}  // namespace vramlab
