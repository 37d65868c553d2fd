// Putting things of different cost into bins, and sizes that grow step by step (K2-14).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vramlab {

/// First fit decreasing: items by descending cost (equal ones in their order), each into the first bin whose
/// sum stays within `capacity`. An item that alone exceeds it has a bin of its own. Returns the items'
/// numbers by bin.
std::vector<std::vector<std::size_t>> pack(std::span<const std::int64_t> costs, std::int64_t capacity);

/// The size to try after `size`: `factor` times as large (a half goes to the even neighbour), and at least
/// one larger, so that no factor makes an endless loop.
std::int64_t next_size(std::int64_t size, double factor);

}  // namespace vramlab
