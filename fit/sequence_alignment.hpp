// The best common subsequence of two sequences under a score.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace vramlab {

/// Places of both sequences that belong together, ascending in both.
using Alignment = std::vector<std::pair<std::size_t, std::size_t>>;

/// Pairs with the highest sum of `score(i, j)`; pairs that score 0 are never made. Among equally good
/// alignments the one whose pairs lie latest is taken. Needs one byte for each i and j.
template <class Score>
Alignment align_sequences(std::size_t first, std::size_t second, const Score& score) {
  enum Step : std::uint8_t { kStop, kPair, kSkipFirst, kSkipSecond };
  const std::size_t width = second + 1;
  std::vector<std::uint8_t> steps((first + 1) * width, kStop);
  std::vector<std::int64_t> above(width, 0);
  std::vector<std::int64_t> row(width, 0);
  for (std::size_t i = 1; i <= first; ++i) {
    steps[i * width] = kSkipFirst;
    for (std::size_t j = 1; j <= second; ++j) {
      row[j] = above[j];
      std::uint8_t step = kSkipFirst;
      if (row[j - 1] > row[j]) {
        row[j] = row[j - 1];
        step = kSkipSecond;
      }
      const std::int64_t one = score(i - 1, j - 1);
      if (one > 0 && above[j - 1] + one >= row[j]) {
        row[j] = above[j - 1] + one;
        step = kPair;
      }
      steps[i * width + j] = step;
    }
    std::swap(row, above);
  }
  Alignment pairs;
  std::size_t i = first;
  std::size_t j = second;
  while (i > 0 && j > 0) {
    const std::uint8_t step = steps[i * width + j];
    if (step == kPair) pairs.emplace_back(--i, --j);
    if (step == kSkipFirst) --i;
    if (step == kSkipSecond) --j;
  }
  std::reverse(pairs.begin(), pairs.end());
  return pairs;
}

/// Both sequences merged: pairs once, everything else at its place (the first sequence's before the
/// second's). Each entry gives the places in both; `kNoPlace` where one has none.
inline constexpr std::size_t kNoPlace = static_cast<std::size_t>(-1);
inline Alignment merge_sequences(std::size_t first, std::size_t second, const Alignment& pairs) {
  Alignment merged;
  std::size_t i = 0;
  std::size_t j = 0;
  const auto advance = [&](std::size_t to_i, std::size_t to_j) {
    while (i < to_i) merged.emplace_back(i++, kNoPlace);
    while (j < to_j) merged.emplace_back(kNoPlace, j++);
  };
  for (const auto& [a, b] : pairs) {
    advance(a, b);
    merged.emplace_back(i++, j++);
  }
  advance(first, second);
  return merged;
}

}  // namespace vramlab
