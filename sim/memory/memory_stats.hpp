// The counters of torch.cuda.memory_stats(), with the same names and the same meaning (R8.1 to R8.6).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/units.hpp"

namespace vramlab {

/// The four values of one counter. Signed, because the oversize counters can go below zero (R8.3).
struct Stat {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;  ///< sum of all increases
  std::int64_t freed = 0;      ///< sum of all decreases

  friend bool operator==(const Stat&, const Stat&) = default;
};

/// A counter that allocations and frees move. Nothing is written that follows from the rest: what was freed
/// is what was allocated and is not there any more.
class Counter {
 public:
  constexpr void increase(std::int64_t amount) {
    current_ += amount;
    if (current_ > peak_) [[unlikely]]  // rarely: a branch costs less than a store each time
      peak_ = current_;
    allocated_ += amount;
  }
  constexpr void decrease(std::int64_t amount) { current_ -= amount; }

  /// One increase or one decrease by the net amount, without a branch on which it is (R3.5).
  constexpr void change(std::int64_t net) {
    current_ += net;
    if (current_ > peak_) [[unlikely]]
      peak_ = current_;
    allocated_ += net > 0 ? net : 0;
  }

  /// The value moves to `value`, the sums stay.
  constexpr void set_current(std::int64_t value) {
    at_reset_ += value - current_;
    current_ = value;
    peak_ = std::max(peak_, current_);
  }

  /// Changes as another counter did between `before` and `after`; the peak may have been reset before.
  constexpr void repeat(const Counter& before, const Counter& after) {
    peak_ = std::max(peak_, current_ + (after.peak_ - before.current_));
    current_ += after.current_ - before.current_;
    allocated_ += after.allocated_ - before.allocated_;
    at_reset_ += after.at_reset_ - before.at_reset_;
  }

  constexpr void reset_peak() { peak_ = current_; }
  constexpr void reset_sums() {
    allocated_ = 0;
    at_reset_ = current_;
  }

  [[nodiscard]] constexpr std::int64_t current() const { return current_; }
  [[nodiscard]] constexpr std::int64_t peak() const { return peak_; }
  [[nodiscard]] constexpr std::int64_t allocated() const { return allocated_; }
  [[nodiscard]] constexpr std::int64_t freed() const { return allocated_ - (current_ - at_reset_); }
  [[nodiscard]] constexpr Stat value() const { return {current_, peak_, allocated_, freed()}; }

  friend bool operator==(const Counter&, const Counter&) = default;

 private:
  std::int64_t current_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t allocated_ = 0;
  std::int64_t at_reset_ = 0;  // `current_` when the sums were 0 last
};

/// The classes an array counter is kept in: everything, and the kind of pool (R8.2).
enum class StatClass : std::uint8_t { all, small_pool, large_pool };

/// A counter kept for all pools together and for small and large pools apart. Of everything together only
/// the peak is kept, the rest is the sum. An allocator counts by classes, or knows none and counts the whole.
class StatArray {
 public:
  /// Changes the class `c`, which must not be `all`, and `all` with it (R8.2).
  constexpr void increase(StatClass c, std::int64_t amount) {
    of(c).increase(amount);
    raise_peak(small().current() + large().current());
  }
  constexpr void decrease(StatClass c, std::int64_t amount) { of(c).decrease(amount); }
  constexpr void change(StatClass c, std::int64_t net) {
    of(c).change(net);
    raise_peak(small().current() + large().current());
  }

  /// For allocators that know no classes.
  constexpr void increase_whole(Bytes amount) {
    whole().increase(static_cast<std::int64_t>(amount));
    raise_peak(whole().current());
  }
  constexpr void decrease_whole(Bytes amount) { whole().decrease(static_cast<std::int64_t>(amount)); }
  constexpr void set_whole(Bytes value) {
    whole().set_current(static_cast<std::int64_t>(value));
    raise_peak(whole().current());
  }

  /// Changes as another array did between `before` and `after`; peaks may have been reset before.
  constexpr void repeat(const StatArray& before, const StatArray& after) {
    raise_peak(current() + (after.peak_ - before.current()));
    for (std::size_t i = 0; i < counters_.size(); ++i)
      counters_[i].repeat(before.counters_[i], after.counters_[i]);
  }

  constexpr void reset_peak() {
    peak_ = current();
    for (Counter& counter : counters_) counter.reset_peak();
  }
  constexpr void reset_sums() {
    for (Counter& counter : counters_) counter.reset_sums();
  }

  [[nodiscard]] constexpr Stat all() const {
    return {current(), peak_, sum(&Counter::allocated), sum(&Counter::freed)};
  }
  [[nodiscard]] constexpr Stat operator[](StatClass c) const {
    return c == StatClass::all ? all() : counters_[static_cast<std::size_t>(c)].value();
  }

  friend bool operator==(const StatArray&, const StatArray&) = default;

 private:
  [[nodiscard]] constexpr Counter& of(StatClass c) { return counters_[static_cast<std::size_t>(c)]; }
  [[nodiscard]] constexpr Counter& whole() { return counters_[0]; }
  [[nodiscard]] constexpr const Counter& small() const { return counters_[1]; }
  [[nodiscard]] constexpr const Counter& large() const { return counters_[2]; }
  [[nodiscard]] constexpr std::int64_t sum(std::int64_t (Counter::*value)() const) const {
    return (counters_[0].*value)() + (counters_[1].*value)() + (counters_[2].*value)();
  }
  [[nodiscard]] constexpr std::int64_t current() const { return sum(&Counter::current); }
  constexpr void raise_peak(std::int64_t current) {
    if (current > peak_) [[unlikely]]
      peak_ = current;
  }

  std::array<Counter, 3> counters_;  // by StatClass; [0] is the whole of an allocator without classes
  std::int64_t peak_ = 0;            // of everything together
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
  Counter oversize_allocations;
  Counter oversize_segments;
  std::int64_t num_alloc_retries = 0;
  std::int64_t num_ooms = 0;
  std::int64_t num_sync_all_streams = 0;
  std::int64_t num_device_alloc = 0;
  std::int64_t num_device_free = 0;
  std::int64_t num_oom_rejections = 0;  ///< by throw_on_cudamalloc_oom; not a key before torch 2.12
  std::int64_t max_split_size = -1;     ///< as it was when the allocator was made; −1 = unlimited (R8.4)

  /// Every peak becomes the current value (R8.5).
  void reset_peaks();
  /// Sums and numbers of events become 0 (R8.5).
  void reset_sums();
  /// What rose by n between `before` and `after` rises by n, and a peak rises as far as it rose there after
  /// it was reset at `before`.
  void repeat(const MemoryStats& before, const MemoryStats& after);

  friend bool operator==(const MemoryStats&, const MemoryStats&) = default;
};

/// The counters that are kept by class, with their names.
inline constexpr std::pair<const char*, StatArray MemoryStats::*> kStatArrays[] = {
    {"allocation", &MemoryStats::allocation},
    {"segment", &MemoryStats::segment},
    {"active", &MemoryStats::active},
    {"inactive_split", &MemoryStats::inactive_split},
    {"allocated_bytes", &MemoryStats::allocated_bytes},
    {"reserved_bytes", &MemoryStats::reserved_bytes},
    {"active_bytes", &MemoryStats::active_bytes},
    {"inactive_split_bytes", &MemoryStats::inactive_split_bytes},
    {"requested_bytes", &MemoryStats::requested_bytes},
};

/// The 122 keys of torch.cuda.memory_stats() up to torch 2.11, sorted, such as "allocated_bytes.all.current"
/// (R8.6); `num_oom_rejections`, which came later, is not among them.
const std::vector<std::string>& stat_names();

/// The values of `stats` in the order of `stat_names()`.
std::vector<std::int64_t> stat_values(const MemoryStats& stats);

/// The current value of a counter of bytes or pieces.
inline Bytes total_of(const StatArray& stat) { return static_cast<Bytes>(stat.all().current); }

}  // namespace vramlab
