// Where the CUDA driver puts what it hands out (R10.7, R10.9). Addresses matter only for ties between cached
// blocks of equal size and for the order of releases, but such ties are frequent.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/units.hpp"

namespace vramlab {

/// The address policy fitted to an H100 with CUDA 13 under Linux. A copyable value.
///
/// cudaMalloc works in chunks of a multiple of 32 MiB that are placed top-down; reserved ranges fill the
/// lowest gaps above a fixed address.
class DriverAddresses {
 public:
  /// A program that has run kernels: 8 MiB in use in the first chunk, and a newer chunk of which the last
  /// 2 MiB are free.
  static DriverAddresses of_training_process();

  /// A process that did nothing but open its context: one chunk with 6 MiB in use.
  static DriverAddresses of_bare_process();

  /// Address of a new allocation of `size` bytes, a multiple of 2 MiB.
  Address take(Bytes size);
  /// Gives back an allocation with its size.
  void give(Address address, Bytes size);

  /// Base of a new reserved range.
  Address take_range(Bytes size);
  void give_range(Address base);

  /// Appends everything that later addresses depend on.
  void append_canonical_state(std::vector<std::uint64_t>& out) const;

 private:
  struct Span {
    Address address = 0;
    Bytes size = 0;
    [[nodiscard]] Address end() const { return address + size; }
  };
  struct Chunk {
    Span span;
    std::vector<Span> holes;  ///< by address, never touching each other
  };

  void add_start_chunk(Bytes in_use);
  Chunk& open_chunk(Bytes size);
  [[nodiscard]] Address place_chunk(Bytes size) const;

  std::vector<Chunk> chunks_;  ///< oldest first
  std::vector<Span> ranges_;   ///< by address
};

}  // namespace vramlab
