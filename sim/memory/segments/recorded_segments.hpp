// Segments at the addresses of an earlier run: the source that gives them out again, and the one that notes
// them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/memory/segments/segment_source.hpp"

namespace vramlab {

/// Hands out addresses that the replayer supplies, in the order they were supplied. Where none is left the
/// base is symbolic: a placeholder that is never used twice, which the replayer can translate once a recorded
/// pointer shows where the segment really is. Ranges lie below segments, as they do in reality: between equal
/// sizes the lower address decides.
class RecordedSegments : public SegmentSource {
 public:
  /// A device of `total` bytes of which this process can have `usable`; empty = never runs out.
  explicit RecordedSegments(Bytes total, std::optional<Bytes> usable = {}) : total_(total), usable_(usable) {}

  /// The base of the next segment, or of the next reserved range.
  void supply_segment(Address base) { segments_.push_back(base); }
  void supply_range(Address base) { ranges_.push_back(base); }
  /// Takes back what was supplied and not used.
  void discard_supplied() {
    segments_.clear();
    ranges_.clear();
  }
  [[nodiscard]] std::size_t supplied() const { return segments_.size() + ranges_.size(); }

  /// A segment, or memory mapped into a range, that is held from the start.
  void hold_segment(Address base, Bytes size) {
    taken_ += size;
    sizes_.emplace(base, size);
  }
  void hold_mapped(Bytes size) { taken_ += size; }

  /// Whether the segment or range at `base` has a placeholder for an address.
  [[nodiscard]] bool is_symbolic(Address base) const { return symbolic_.count(base) > 0; }

  std::optional<Address> reserve(Bytes size) override;
  void release(Address base) override;
  Address reserve_range(Bytes size, Bytes page) override;
  void release_range(Address) override {}
  bool map(Address, Bytes size) override { return take(size); }
  void unmap(Address, Bytes size) override { taken_ -= size; }
  [[nodiscard]] Bytes device_free() const override { return usable_.value_or(total_) - taken_; }
  [[nodiscard]] Bytes device_total() const override { return total_; }

 private:
  Address place(std::deque<Address>& supplied, Address& next_symbolic, Bytes size);
  bool take(Bytes size);

  Bytes total_;
  std::optional<Bytes> usable_;
  Bytes taken_ = 0;
  Address next_symbolic_range_ = Address{1} << 38;
  Address next_symbolic_segment_ = Address{1} << 56;
  std::deque<Address> segments_;
  std::deque<Address> ranges_;
  std::map<Address, Bytes> sizes_;  ///< of the segments held
  std::set<Address> symbolic_;
};

// Notes what another segment source was asked and what it answered, so that a second run can be given the
// same addresses and be held against it.

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
