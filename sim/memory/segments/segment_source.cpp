#include "sim/memory/segments/segment_source.hpp"

#include <algorithm>

namespace vramlab {

std::optional<Address> LimitSegments::reserve(Bytes size) {
  if (size > limit_ - used_) return std::nullopt;
  const auto base = SegmentAdaptor::reserve(size);
  if (base) {
    used_ += size;
    sizes_.emplace(*base, size);
  }
  return base;
}

void LimitSegments::release(Address base) {
  SegmentAdaptor::release(base);
  used_ -= sizes_.at(base);
  sizes_.erase(base);
}

bool LimitSegments::map(Address address, Bytes size) {
  if (size > limit_ - used_ || !SegmentAdaptor::map(address, size)) return false;
  used_ += size;
  return true;
}

void LimitSegments::unmap(Address address, Bytes size) {
  SegmentAdaptor::unmap(address, size);
  used_ -= size;
}

Bytes LimitSegments::device_free() const { return std::min(SegmentAdaptor::device_free(), limit_ - used_); }

std::optional<Address> FailOnNth::reserve(Bytes size) {
  if (fails()) return std::nullopt;
  return SegmentAdaptor::reserve(size);
}

bool FailOnNth::map(Address address, Bytes size) { return !fails() && SegmentAdaptor::map(address, size); }

}  // namespace vramlab
