// Samples of mixed tasks, what a batch of them adds up to, and how they are packed into rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vramlab {

/// A sample's number in its data set.
using SampleId = std::uint32_t;

inline constexpr std::size_t kMostTasks = 8;

/// One sample as its metadata describes it.
struct Sample {
  std::uint32_t task = 0;   ///< number of its task, below kMostTasks
  std::int32_t images = 0;  ///< at least 0
  std::int64_t length = 0;  ///< tokens of its text
  std::int64_t tokens = 1;  ///< positions it takes in a padded row: text and images; at least 1

  friend bool operator==(const Sample&, const Sample&) = default;
};

/// Tokens of the longest of `batch`; 0 if it is empty.
[[nodiscard]] inline std::int64_t longest_of(std::span<const Sample> batch) {
  std::int64_t longest = 0;
  for (const Sample& sample : batch) longest = std::max(longest, sample.tokens);
  return longest;
}

/// Sums over a batch: all that a predictor or a collator looks at.
struct BatchShape {
  std::int64_t samples = 0;
  std::int64_t images = 0;
  std::int64_t tokens = 0;   ///< of all samples
  std::int64_t longest = 0;  ///< tokens of the longest
  bool packs = false;        ///< the collator puts several samples into a row (models/sample.hpp)
  bool accumulates = false;  ///< a micro-batch that keeps the gradients of the one before
  std::array<std::int64_t, kMostTasks> task_samples{};
  std::array<std::int64_t, kMostTasks> task_images{};

  void add(const Sample& sample) {
    ++samples;
    images += sample.images;
    tokens += sample.tokens;
    longest = std::max(longest, sample.tokens);
    ++task_samples[sample.task];
    task_images[sample.task] += sample.images;
  }

  /// Positions of the batch: every row padded to the longest, or, where samples share rows, at least as many.
  [[nodiscard]] std::int64_t positions() const {
    if (samples == 0) return 0;
    return (packs ? (tokens + longest - 1) / longest : samples) * longest;
  }

  /// Share of those positions that is padding; 0 for an empty batch.
  [[nodiscard]] double padding() const {
    return samples == 0 ? 0 : 1 - static_cast<double>(tokens) / static_cast<double>(positions());
  }

  friend bool operator==(const BatchShape&, const BatchShape&) = default;
};

// Putting things of different cost into bins, and sizes that grow step by step (K2-14).

/// First fit decreasing: items by descending cost (equal ones in their order), each into the first bin whose
/// sum stays within `capacity`. An item that alone exceeds it has a bin of its own. Returns the items'
/// numbers by bin.
std::vector<std::vector<std::size_t>> pack(std::span<const std::int64_t> costs, std::int64_t capacity);

/// The size to try after `size`: `factor` times as large (a half goes to the even neighbour), and at least
/// one larger, so that no factor makes an endless loop.
std::int64_t next_size(std::int64_t size, double factor);

}  // namespace vramlab
