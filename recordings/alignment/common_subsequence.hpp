// The longest common subsequence of two sequences of keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace vramlab {

/// Places in both that hold equal keys, ascending in both: the most there can be, by Myers' algorithm ("An
/// O(ND) Difference Algorithm and Its Variations", 1986). Where the two differ in more than some thousand
/// places, the way that got furthest is kept and the search goes on from there: then there may be fewer.
std::vector<std::pair<std::size_t, std::size_t>> common_subsequence(std::span<const std::uint32_t> a,
                                                                    std::span<const std::uint32_t> b);

}  // namespace vramlab
