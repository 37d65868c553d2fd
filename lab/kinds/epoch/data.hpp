// Data sets of an epoch scenario: samples drawn with a seed, or those of a file.
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
  std::int64_t shortest = 0;  ///< tokens of text, drawn evenly; at least 1 to draw from
  std::int64_t longest = 0;
};

/// Samples far longer than the others.
struct Outliers {
  std::int64_t every = 0;  ///< one sample in this many; 0 = none
  std::int64_t times = 1;  ///< its text has this many times the tokens that were drawn
};

/// `count` samples; equal on every machine. `tokens_per_image` positions of a row are an image's.
std::vector<Sample> draw_samples(const std::vector<TaskSort>& tasks, std::int64_t count,
                                 const Outliers& outliers, std::int64_t tokens_per_image, std::uint64_t seed);

/// How a file of samples is read.
struct SampleFile {
  std::filesystem::path file;        ///< CSV with a header, or JSON lines: an object a line
  std::string column = "tokens";     ///< that holds the lengths
  double positions_per_second = 0;   ///< above 0: that column holds seconds, and each has this many positions
  std::int64_t most = 10'000'000;    ///< longer ones are cut there; positions
  std::int64_t count = 0;            ///< the first lines that are read; 0 = all
  std::vector<std::string> tasks{};  ///< names of the tasks; empty = the lines name none
  std::int64_t tokens_per_image = 0;
};

struct SampleList {
  std::vector<Sample> samples;
  std::int64_t skipped = 0;  ///< lines without length and images
};

/// One sample a line. Where tasks are named each line has the columns task, images (may be absent: 0) and the
/// one of lengths, and no others; else all columns but that one are passed over. Throws InputError, with the
/// first 20 wrong lines, for a length that is not a whole number of positions (or not a number of seconds)
/// from 0 to 1,000,000,000, an unknown task, a missing or unknown column, and a file without samples.
SampleList read_samples(const SampleFile& how);

/// Losses and gradient norms that are declared, not simulated.
struct SeriesFile {
  DeclaredSeries losses;
  DeclaredSeries gradient_norms;
};

/// A CSV file with the columns task, loss, gradient_norm: line n of a task is for the n-th batch, the last
/// one for all later ones. Throws InputError where a task has no line, or a figure is none.
SeriesFile read_series(const std::filesystem::path& file, const std::vector<std::string>& tasks);

}  // namespace vramlab
