// The counters of torch.cuda.memory_stats(), with the same names and the same meaning (R8.1 to R8.6).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.hpp"

namespace vramlab {

/// One counter. Signed, because the oversize counters can go below zero (R8.3).
struct Stat {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;  ///< sum of all increases
  std::int64_t freed = 0;      ///< sum of all decreases

  constexpr void increase(std::int64_t amount) {
    current += amount;
    if (current > peak) [[unlikely]]  // rarely: a branch costs less than a store each time
      peak = current;
    allocated += amount;
  }
  constexpr void decrease(std::int64_t amount) {
    current -= amount;
    freed += amount;
  }
  constexpr void reset_peak() { peak = current; }

  friend bool operator==(const Stat&, const Stat&) = default;
};

/// The classes an array counter is kept in: everything, and the kind of pool (R8.2).
enum class StatClass : std::uint8_t { all, small_pool, large_pool };

/// A counter kept for all pools together and for small and large pools apart.
struct StatArray {
  std::array<Stat, 3> by_class{};

  [[nodiscard]] const Stat& operator[](StatClass c) const { return by_class[static_cast<std::size_t>(c)]; }
  [[nodiscard]] Stat& operator[](StatClass c) { return by_class[static_cast<std::size_t>(c)]; }
  [[nodiscard]] const Stat& all() const { return by_class[0]; }

  /// Changes `all` and the class `c`, which must not be `all` (R8.2).
  constexpr void increase(StatClass c, std::int64_t amount) {
    by_class[0].increase(amount);
    by_class[static_cast<std::size_t>(c)].increase(amount);
  }
  constexpr void decrease(StatClass c, std::int64_t amount) {
    by_class[0].decrease(amount);
    by_class[static_cast<std::size_t>(c)].decrease(amount);
  }
  /// One increase or one decrease by the net amount; nothing for 0 (R3.5).
  constexpr void change(StatClass c, std::int64_t net) {
    if (net > 0) increase(c, net);
    if (net < 0) decrease(c, -net);
  }

  friend bool operator==(const StatArray&, const StatArray&) = default;
};

/// Everything memory_stats() reports, in bytes and numbers of blocks or segments.
struct MemoryStats {
  StatArray allocation;
  StatArray segment;
  StatArray active;
  StatArray inactive_split;
  StatArray allocated_bytes;
  StatArray reserved_bytes;
  StatArray active_bytes;
  StatArray inactive_split_bytes;
  StatArray requested_bytes;
  Stat oversize_allocations;
  Stat oversize_segments;
  std::int64_t num_alloc_retries = 0;
  std::int64_t num_ooms = 0;
  std::int64_t num_sync_all_streams = 0;
  std::int64_t num_device_alloc = 0;
  std::int64_t num_device_free = 0;
  std::int64_t max_split_size = -1;  ///< as it was when the allocator was made; −1 = unlimited (R8.4)

  friend bool operator==(const MemoryStats&, const MemoryStats&) = default;
};

/// The 122 keys of torch.cuda.memory_stats(), sorted, such as "allocated_bytes.all.current" (R8.6).
const std::vector<std::string>& stat_names();

/// The values of `stats` in the order of `stat_names()`.
std::vector<std::int64_t> stat_values(const MemoryStats& stats);

}  // namespace vramlab
