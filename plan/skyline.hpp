// Packing from below: a valley of what lies there already takes the buffer that comes first among those that
// live within it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "plan/buffers.hpp"
#include "plan/trees.hpp"

namespace vramlab {

/// How one pass went.
struct SkylinePass {
  std::size_t placed = 0;              ///< buffers: the measure of work
  std::optional<std::size_t> trouble;  ///< the piece of time that could not stay below the bound
};

/// Packs the same buffers in one order after another.
///
/// Memory over time has a skyline. In a valley of it the first buffer of the order that lives within the
/// valley is put on the ground; where there is none, the valley is filled up to its lower wall, which wastes
/// what lies in between. Every plan in which no buffer can be moved down comes out of some order.
class Skyline {
 public:
  /// Both must outlive it.
  Skyline(const std::vector<Buffer>& buffers, const Timeline& timeline);

  /// Packs in `order` (every buffer once), and ends early where some piece of time cannot stay below `bound`
  /// with what is still to come; `offsets` (by buffer) then means nothing.
  SkylinePass pack(const std::vector<std::uint32_t>& order, Bytes bound, std::vector<Bytes>& offsets);

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// A stretch of equal height.
  struct Plateau {
    std::uint32_t begin, end;
    Bytes height;
    std::uint32_t left, right;  ///< neighbours; kNone at the ends of time
  };

  void reset(const std::vector<std::uint32_t>& order);
  [[nodiscard]] std::uint32_t valley_near(std::uint32_t plateau) const;
  [[nodiscard]] Bytes height_of(std::uint32_t plateau) const;
  std::uint32_t add_behind(std::uint32_t left, const Plateau& plateau);
  // These return a plateau at the place that changed.
  std::uint32_t join(std::uint32_t plateau);
  std::uint32_t put(std::uint32_t valley, std::uint32_t buffer);
  std::uint32_t fill(std::uint32_t valley);

  const std::vector<Buffer>& buffers_;
  const Timeline& timeline_;
  std::vector<std::uint32_t> begin_at_;  ///< by piece: how many buffers begin before it
  std::vector<std::uint32_t> item_;      ///< by buffer: its place in the tree
  RankTree unplaced_;
  NeedTree need_;
  std::vector<Plateau> plateaus_;
};

}  // namespace vramlab
