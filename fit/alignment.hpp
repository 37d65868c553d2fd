// The best common subsequence of two sequences under a score.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace vramlab {

/// Places of both sequences that belong together, ascending in both.
using Alignment = std::vector<std::pair<std::size_t, std::size_t>>;

/// Pairs with the highest sum of `score(i, j)`; pairs that score 0 are never made. Among equally good
/// alignments the one whose pairs lie latest is taken. Needs one byte for each i and j; throws InputError for
/// more than 2 · 10⁹.
template <class Score>
Alignment align_sequences(std::size_t first, std::size_t second, const Score& score) {
  constexpr std::size_t kMostPairs = 2'000'000'000;
  if (second > 0 && first > kMostPairs / second) {
    throw InputError("",
                     "steps of " + std::to_string(second) +
                         " actions are too long to be compared with each other. Record shorter ones, such "
                         "as fewer tokens or layers.");
  }
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

}  // namespace vramlab
