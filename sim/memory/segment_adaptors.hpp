// Segment sources that stand before another one and make it behave worse.
#pragma once

#include <map>

#include "sim/memory/segment_source.hpp"

namespace vramlab {

/// Passes everything on to another source. Base of the adaptors.
class SegmentAdaptor : public SegmentSource {
 public:
  /// `inner` must outlive the adaptor.
  explicit SegmentAdaptor(SegmentSource& inner) : inner_(inner) {}

  std::optional<Address> reserve(Bytes size) override { return inner_.reserve(size); }
  void release(Address base) override { inner_.release(base); }
  Address reserve_range(Bytes size, Bytes page) override { return inner_.reserve_range(size, page); }
  void release_range(Address base) override { inner_.release_range(base); }
  bool map(Address address, Bytes size) override { return inner_.map(address, size); }
  void unmap(Address address, Bytes size) override { inner_.unmap(address, size); }
  [[nodiscard]] Bytes device_free() const override { return inner_.device_free(); }
  [[nodiscard]] Bytes device_total() const override { return inner_.device_total(); }

 private:
  SegmentSource& inner_;
};

/// Lets a program have at most `limit` bytes, as if the rest of the card were taken.
class LimitSegments : public SegmentAdaptor {
 public:
  LimitSegments(SegmentSource& inner, Bytes limit) : SegmentAdaptor(inner), limit_(limit) {}

  std::optional<Address> reserve(Bytes size) override;
  void release(Address base) override;
  bool map(Address address, Bytes size) override;
  void unmap(Address address, Bytes size) override;
  [[nodiscard]] Bytes device_free() const override;

 private:
  Bytes limit_;
  Bytes used_ = 0;
  std::map<Address, Bytes> sizes_;
};

/// Refuses the n-th request for memory (cudaMalloc or mapping), counted from 1, and serves all others.
class FailOnNth : public SegmentAdaptor {
 public:
  FailOnNth(SegmentSource& inner, int n) : SegmentAdaptor(inner), left_(n) {}

  std::optional<Address> reserve(Bytes size) override;
  bool map(Address address, Bytes size) override;

 private:
  bool fails() { return --left_ == 0; }

  int left_;
};

}  // namespace vramlab
