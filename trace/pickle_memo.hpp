// What a pickle remembers, in four bytes a value.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/chunked_array.hpp"
#include "trace/pickle_value.hpp"

namespace vramlab {

/// The memo of a pickle: numbered values, most of them texts and containers. At most 2^32 of them.
class PickleMemo {
 public:
  [[nodiscard]] std::size_t size() const { return codes_.size(); }

  /// Whether another value can be set.
  [[nodiscard]] bool has_room() const { return odd_.size() < kMostIndices - 1; }

  /// Makes it hold `size` values; new ones are absent.
  void grow(std::size_t size) {
    while (codes_.size() < size) codes_.push_back(kAbsent);
  }

  [[nodiscard]] PickleValue at(std::size_t number) const {
    const std::uint32_t code = codes_[number];
    if (code == kAbsent) return PickleDocument::absent();
    if ((code & kKindMask) == kOdd) return odd_[code >> kKindBits];
    return PickleDocument::handle(static_cast<PickleValue::Kind>(code & kKindMask), code >> kKindBits);
  }

  void set(std::size_t number, PickleValue value) {
    if (value == PickleDocument::absent()) {
      codes_[number] = kAbsent;
    } else if (value.kind() >= PickleValue::Kind::text && value.index() < kMostIndices) {
      codes_[number] = value.index() << kKindBits | static_cast<std::uint32_t>(value.kind());
    } else {
      codes_[number] = static_cast<std::uint32_t>(odd_.size()) << kKindBits | kOdd;
      odd_.push_back(value);
    }
  }

 private:
  static constexpr int kKindBits = 4;
  static constexpr std::uint32_t kKindMask = 0xF;
  static constexpr std::uint32_t kOdd = 0xE;  ///< the value stands in `odd_`
  static constexpr std::uint32_t kAbsent = 0xFFFF'FFFF;
  static constexpr std::uint32_t kMostIndices = std::uint32_t{1} << 28;

  ChunkedArray<std::uint32_t, std::size_t{1} << 18> codes_;
  std::vector<PickleValue> odd_;
};

}  // namespace vramlab
