// Data sets of an epoch scenario: samples drawn with a seed, or lengths from a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/sample.hpp"
#include "sim/runs/epoch_loop.hpp"

namespace vramlab {

/// One task of a drawn data set.
struct TaskSort {
  std::string name;
  std::int64_t share = 1;  ///< compared with the others
  std::int32_t images = 0;
  std::int64_t shortest = 1;  ///< tokens of text, drawn evenly
  std::int64_t longest = 1;
};

/// Samples far longer than the others.
struct Outliers {
  std::int64_t every = 0;  ///< one sample in this many; 0 = none
  std::int64_t times = 1;  ///< its text has this many times the tokens that were drawn
};

/// `count` samples; equal on every machine. `tokens_per_image` positions of a row are an image's.
std::vector<Sample> draw_samples(const std::vector<TaskSort>& tasks, std::int64_t count,
                                 const Outliers& outliers, std::int64_t tokens_per_image, std::uint64_t seed);

/// One sample a line of the column `column` of a CSV file, `most` tokens at most (longer ones are cut there),
/// the first `count` lines (0 = all). Throws InputError for a line that is not a whole number of at least 1.
std::vector<Sample> read_lengths(const std::filesystem::path& file, const std::string& column,
                                 std::int64_t most, std::int64_t count);

/// Losses and gradient norms that are declared, not simulated.
struct SeriesFile {
  DeclaredSeries losses;
  DeclaredSeries gradient_norms;
};

/// A CSV file with the columns task, loss, gradient_norm: line n of a task is for the n-th batch, the last
/// one for all later ones. Throws InputError where a task has no line, or a figure is none.
SeriesFile read_series(const std::filesystem::path& file, const std::vector<std::string>& tasks);

}  // namespace vramlab
