#include "cuda/held_memory.hpp"

#include <algorithm>

namespace vramlab {
namespace {

constexpr Bytes kPage = 2_MiB;

}  // namespace

// In few large pieces, and where those no longer fit in smaller ones.
void HeldMemory::hold(Bytes bytes) {
  const Bytes target = round_up(bytes, kPage);
  while (held_ > target) give_back();
  for (Bytes piece = 1_GiB; held_ < target && piece >= kPage;) {
    piece = std::min(piece, target - held_);
    if (!take(piece)) piece = piece == kPage ? 0 : std::max(kPage, piece / 2 / kPage * kPage);
  }
}

bool HeldMemory::take(Bytes size) {
  const auto base = segments_.reserve(size);
  if (!base) return false;
  pieces_.push_back({*base, size});
  held_ += size;
  return true;
}

void HeldMemory::give_back() {
  segments_.release(pieces_.back().base);
  held_ -= pieces_.back().size;
  pieces_.pop_back();
}

}  // namespace vramlab
