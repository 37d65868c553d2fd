// What one thread takes from `new` and does not give back, while somebody counts.
#pragma once

#include <cstdint>
#include <utility>

namespace vramlab {

/// Counts from its beginning to its end; of several on a thread the innermost counts alone. Sizes are those
/// that were asked for, so that equal work gives equal counts whatever other threads do; only where memory
/// is given back without its size, what the C library had set aside for it is taken off.
///
/// The operators that count are in counted_new.cpp, which a program compiles itself; in others all counts
/// are 0.
class HeapCount {
 public:
  HeapCount() : outer_(std::exchange(innermost, this)) {}
  ~HeapCount() { innermost = outer_; }
  HeapCount(const HeapCount&) = delete;
  HeapCount& operator=(const HeapCount&) = delete;

  /// Bytes taken less bytes given back.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

  /// For the operators: `bytes` were taken, or given back if negative.
  static void note(std::int64_t bytes) {
    if (innermost != nullptr) innermost->bytes_ += bytes;
  }

 private:
  inline static constinit thread_local HeapCount* innermost = nullptr;

  HeapCount* outer_;
  std::int64_t bytes_ = 0;
};

}  // namespace vramlab
