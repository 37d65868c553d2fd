// Notes what another segment source was asked and what it answered, so that a second run can be given the
// same addresses and be held against it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/memory/recorded_segments.hpp"
#include "sim/memory/segment_adaptors.hpp"

namespace vramlab {

/// One call for memory, as the source answered it.
struct SegmentCall {
  enum class Kind : std::uint8_t { reserve, release, map, unmap };
  Kind kind{};
  Bytes size = 0;  ///< 0 for release
  bool served = true;
  Bytes free_before = 0;  ///< of the device
};

/// Passes everything on. Keeps the calls, and the bases in the order in which they were handed out.
class LoggedSegments : public SegmentAdaptor {
 public:
  using SegmentAdaptor::SegmentAdaptor;

  std::optional<Address> reserve(Bytes size) override {
    note(SegmentCall::Kind::reserve, size);
    const auto base = SegmentAdaptor::reserve(size);
    calls_.back().served = base.has_value();
    if (base) segments_.push_back(*base);
    return base;
  }

  void release(Address base) override {
    note(SegmentCall::Kind::release, 0);
    SegmentAdaptor::release(base);
  }

  Address reserve_range(Bytes size, Bytes page) override {
    ranges_.push_back(SegmentAdaptor::reserve_range(size, page));
    return ranges_.back();
  }

  bool map(Address address, Bytes size) override {
    note(SegmentCall::Kind::map, size);
    calls_.back().served = SegmentAdaptor::map(address, size);
    return calls_.back().served;
  }

  void unmap(Address address, Bytes size) override {
    note(SegmentCall::Kind::unmap, size);
    SegmentAdaptor::unmap(address, size);
  }

  /// Supplies `to` with all bases noted so far.
  void supply(RecordedSegments& to) const {
    for (const Address base : segments_) to.supply_segment(base);
    for (const Address base : ranges_) to.supply_range(base);
  }

  [[nodiscard]] const std::vector<SegmentCall>& calls() const { return calls_; }

 private:
  void note(SegmentCall::Kind kind, Bytes size) { calls_.push_back({kind, size, true, device_free()}); }

  std::vector<SegmentCall> calls_;
  std::vector<Address> segments_;
  std::vector<Address> ranges_;
};

}  // namespace vramlab
