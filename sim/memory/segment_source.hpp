// The seam below every allocator: where raw device memory comes from.
#pragma once

#include <optional>

#include "sim/core/units.hpp"

namespace vramlab {

/// Where an allocator gets raw memory from: a pretended card, a recording, or the driver.
///
/// All sizes are bytes. A source that cannot serve a request returns nothing and changes nothing;
/// it never throws for lack of memory.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;

  /// cudaMalloc: reserves `size` bytes. Empty when the card has too little left (R10.2).
  virtual std::optional<Address> reserve(Bytes size) = 0;

  /// cudaFree: gives a reserved segment back. `base` must come from `reserve` and not be released yet.
  virtual void release(Address base) = 0;

  /// Reserves an address range without memory behind it, for an expandable segment (R5.2). Memory will be
  /// mapped in pages of `page` bytes, each of them one physical allocation.
  virtual Address reserve_range(Bytes size, Bytes page) = 0;

  /// Returns an address range; nothing may be mapped in it.
  virtual void release_range(Address base) = 0;

  /// Puts physical memory behind [address, address + size), all of it or nothing (R5.4).
  /// False when the card has too little left.
  virtual bool map(Address address, Bytes size) = 0;

  /// Takes the physical memory behind [address, address + size) away; all of it must be mapped.
  virtual void unmap(Address address, Bytes size) = 0;

  /// Free memory of the whole device in bytes, as cudaMemGetInfo reports it.
  [[nodiscard]] virtual Bytes device_free() const = 0;

  /// Total memory of the device in bytes, as cudaMemGetInfo reports it.
  [[nodiscard]] virtual Bytes device_total() const = 0;
};

}  // namespace vramlab
