// Segments of a real card: cudaMalloc and cudaFree, and for expandable segments the driver's virtual memory.
#pragma once

#include <map>

#include "cuda/card.hpp"
#include "sim/memory/segments/driver.hpp"
#include "sim/memory/segments/segment_source.hpp"

namespace vramlab {

/// The segment source of this process on its current CUDA device.
///
/// A call that fails for lack of memory is an answer; any other failure throws InputError (cuda/card.hpp).
class CudaSegments : public SegmentSource {
 public:
  CudaSegments() = default;
  CudaSegments(const CudaSegments&) = delete;
  CudaSegments& operator=(const CudaSegments&) = delete;
  /// Gives everything back to the card, after all its work is done.
  ~CudaSegments() override;

  std::optional<Address> reserve(Bytes size) override;
  /// Waits for the device's work first, as cudaFree does by itself.
  void release(Address base) override;
  Address reserve_range(Bytes size, Bytes page) override;
  void release_range(Address base) override;
  bool map(Address address, Bytes size) override;
  /// Waits for the device's work first.
  void unmap(Address address, Bytes size) override;
  [[nodiscard]] Bytes device_free() const override { return card_memory_info().free; }
  [[nodiscard]] Bytes device_total() const override { return card_memory_info().total; }

 private:
  struct Range {
    Bytes size = 0;
    Bytes page = 0;
    std::map<Address, Bytes> mapped;  ///< pages with memory behind them
  };
  Range& range_of(Address address);
  static void map_page(Address address, Bytes size, unsigned long long memory);
  static void unmap_pages(Range& range, Address from, Address to);

  std::map<Address, Bytes> segments_;
  std::map<Address, Range> ranges_;
};

/// Passes everything on to the card, and counts how long its calls take: from a moment when the device has no
/// work left, which some of them would wait for.
class TimedSegments final : public SegmentAdaptor {
 public:
  using SegmentAdaptor::SegmentAdaptor;

  std::optional<Address> reserve(Bytes size) override;
  void release(Address base) override;
  bool map(Address address, Bytes size) override;
  void unmap(Address address, Bytes size) override;

  /// Of all calls so far.
  [[nodiscard]] SimTime driver_time() const { return driver_time_; }

 private:
  template <class Call>
  auto timed(const Call& call);

  SimTime driver_time_{0};
};

/// Passes everything on, and counts what the calls take by the times that the simulator goes by
/// (SimSegments).
class ModelledSegments final : public SegmentAdaptor {
 public:
  using SegmentAdaptor::SegmentAdaptor;

  std::optional<Address> reserve(Bytes size) override;
  void release(Address base) override;
  Address reserve_range(Bytes size, Bytes page) override;
  void release_range(Address base) override;
  bool map(Address address, Bytes size) override;
  void unmap(Address address, Bytes size) override;

  /// Of all calls so far.
  [[nodiscard]] SimTime driver_time() const { return driver_time_; }

 private:
  DriverTimes times_ = DriverTimes::of_h100();
  std::map<Address, Bytes> segments_;  ///< in whole pages of the driver
  std::map<Address, Bytes> pages_;     ///< of ranges
  SimTime driver_time_{0};
};

/// How physical memory of the current device is asked for, and how it is made accessible.
CUmemAllocationProp allocation_of_device();
CUmemAccessDesc access_of_device();

/// Smallest unit of physical memory of the current device, in bytes.
Bytes cuda_granularity();

}  // namespace vramlab
