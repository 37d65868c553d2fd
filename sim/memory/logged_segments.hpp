// Notes the addresses that another segment source chose, so that a second run can be given the same ones.
#pragma once

#include <vector>

#include "sim/memory/recorded_segments.hpp"
#include "sim/memory/segment_adaptors.hpp"

namespace vramlab {

/// Passes everything on and keeps the bases in the order in which they were handed out.
class LoggedSegments : public SegmentAdaptor {
 public:
  using SegmentAdaptor::SegmentAdaptor;

  std::optional<Address> reserve(Bytes size) override {
    const auto base = SegmentAdaptor::reserve(size);
    if (base) segments_.push_back(*base);
    return base;
  }

  Address reserve_range(Bytes size, Bytes page) override {
    ranges_.push_back(SegmentAdaptor::reserve_range(size, page));
    return ranges_.back();
  }

  /// Supplies `to` with all bases noted so far.
  void supply(RecordedSegments& to) const {
    for (const Address base : segments_) to.supply_segment(base);
    for (const Address base : ranges_) to.supply_range(base);
  }

 private:
  std::vector<Address> segments_;
  std::vector<Address> ranges_;
};

}  // namespace vramlab
