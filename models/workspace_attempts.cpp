#include "models/workspace_attempts.hpp"

#include <algorithm>
#include <cmath>

namespace vramlab {
namespace {

Bytes moved(Bytes size, Bytes first, Bytes own) {
  const Bytes distance = std::max(size, first) - std::min(size, first);
  if (distance > first / 10) {
    const double scale = static_cast<double>(own) / static_cast<double>(first);
    return static_cast<Bytes>(std::llround(static_cast<double>(size) * scale));
  }
  if (size >= first) return own + distance;
  return own - std::min(distance, own - 1);
}

}  // namespace

std::vector<Bytes> attempts_at(const std::vector<Bytes>& recorded, Bytes own) {
  std::vector<Bytes> sizes;
  for (const Bytes size : recorded) sizes.push_back(moved(size, recorded.front(), own));
  return sizes;
}

}  // namespace vramlab
