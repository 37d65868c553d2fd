// Counters of allocators that know no small and large pools: only the class `all` moves.
#pragma once

#include "sim/core/units.hpp"
#include "sim/memory/memory_stats.hpp"

namespace vramlab {

inline void add_to_total(StatArray& stat, Bytes amount) {
  stat.increase_whole(static_cast<std::int64_t>(amount));
}

inline void take_from_total(StatArray& stat, Bytes amount) {
  stat.decrease_whole(static_cast<std::int64_t>(amount));
}

/// The current value of a counter of bytes or pieces.
inline Bytes total_of(const StatArray& stat) { return static_cast<Bytes>(stat.all().current); }

/// The counters of one more allocation, or one less: `size` bytes handed out for `requested` asked for.
inline void count_allocation(MemoryStats& stats, Bytes size, Bytes requested) {
  add_to_total(stats.allocation, 1);
  add_to_total(stats.active, 1);
  add_to_total(stats.allocated_bytes, size);
  add_to_total(stats.active_bytes, size);
  add_to_total(stats.requested_bytes, requested);
}

inline void count_free(MemoryStats& stats, Bytes size, Bytes requested) {
  take_from_total(stats.allocation, 1);
  take_from_total(stats.active, 1);
  take_from_total(stats.allocated_bytes, size);
  take_from_total(stats.active_bytes, size);
  take_from_total(stats.requested_bytes, requested);
}

/// Every peak of the class `all` becomes the current value (R8.5).
inline void reset_total_peaks(MemoryStats& stats) {
  for (StatArray* stat : {&stats.allocation, &stats.segment, &stats.active, &stats.allocated_bytes,
                          &stats.reserved_bytes, &stats.active_bytes, &stats.requested_bytes}) {
    stat->reset_peak();
  }
}

}  // namespace vramlab
