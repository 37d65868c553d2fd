// What the CUDA driver does: how long its calls take (R10.6), and where it puts memory (R10.7, R10.9).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/segments/address_heap.hpp"

namespace vramlab {

/// What one call took at one size.
struct MeasuredTime {
  Bytes size = 0;
  SimTime time{0};

  friend bool operator==(const MeasuredTime&, const MeasuredTime&) = default;
};

/// The times of one card. Every list has rising sizes and at least two entries; between two of them times are
/// linear, below the first constant, above the last along the last line.
struct DriverTimes {
  std::vector<MeasuredTime> mallocs;
  std::vector<MeasuredTime> frees;
  std::vector<MeasuredTime> creates;  ///< of one physical page of that size
  std::vector<MeasuredTime> maps;
  std::vector<MeasuredTime> unmaps;

  /// cudaMalloc of `size` bytes.
  [[nodiscard]] SimTime malloc_time(Bytes size) const;
  /// cudaFree of a segment of `size` bytes.
  [[nodiscard]] SimTime free_time(Bytes size) const;
  /// Creating `pages` physical pages and mapping them, `size` bytes in all.
  [[nodiscard]] SimTime map_time(Bytes size, Bytes pages) const;
  /// Unmapping `size` bytes.
  [[nodiscard]] SimTime unmap_time(Bytes size) const;

  /// Medians of 15 calls each on an H100 80GB HBM3, CUDA 13.0.
  static const DriverTimes& of_h100();

  friend bool operator==(const DriverTimes&, const DriverTimes&) = default;
};

// Where the CUDA driver puts what it hands out (R10.7, R10.9). Addresses matter only for ties between cached
// blocks of equal size and for the order of releases, but such ties are frequent.

/// What a recorded process got of cudaMalloc.
struct SegmentPlace {
  Address address = 0;
  Bytes size = 0;

  friend bool operator==(const SegmentPlace&, const SegmentPlace&) = default;
};

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

  /// A training process that was recorded: `places` in the order of its calls, as long as the sizes asked for
  /// are those; from the first other one on the fitted policy, below all of them. What else the process had
  /// in its address range shows only in these places. They must outlive it and all its copies.
  static DriverAddresses of_recording(std::span<const SegmentPlace> places);

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
  struct Chunk {
    Address address = 0;
    Bytes size = 0;
    std::map<Address, Bytes> holes;                     ///< never touching each other
    std::set<std::pair<Bytes, Address>> holes_by_size;  ///< the same ones

    void add(Address hole, Bytes bytes);
    void remove(std::map<Address, Bytes>::const_iterator hole);
  };
  using Chunks = std::map<std::uint64_t, Chunk>;

  Address take_recorded(Bytes size);
  void add_start_chunk(Bytes in_use);
  Chunks::iterator open_chunk(Bytes size);
  Address take_from(Chunks::iterator chunk, Bytes size);
  void note_largest(Chunks::const_iterator chunk);

  static constexpr Address kTop = 0x7FF0'0000'0000;      ///< where that lies changes nothing
  static constexpr Address kFirstRange = 0x3'0200'0000;  ///< R10.9

  Chunks chunks_;  ///< by number, the oldest first
  std::uint64_t next_number_ = 0;
  std::map<Address, std::uint64_t> chunk_at_;  ///< their numbers
  SizeMap<std::uint64_t> largest_holes_;       ///< of each chunk
  AddressHeap chunk_space_{0, kTop};           ///< up to the end of the first chunk
  std::map<Address, Bytes> ranges_;
  AddressHeap range_space_{kFirstRange, Address{1} << 62};

  std::span<const SegmentPlace> recorded_;  ///< those that may still come
  Address shift_ = 0;                       ///< added to each of them
  std::map<Address, Bytes> followed_;       ///< those held
};

}  // namespace vramlab
