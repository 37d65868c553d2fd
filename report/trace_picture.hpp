// A static picture of a run: memory against limit and target band, and the parameters, over iterations.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/gnuplot.hpp"
#include "sim/core/run_record.hpp"

namespace vramlab {

/// One run as the picture shows it.
struct PictureRun {
  std::string label;
  const std::vector<IterationRecord>* iterations = nullptr;
};

/// What surrounds the runs.
struct PictureFrame {
  std::string title;
  std::vector<std::string> parameters;  ///< names, in the order of every point
  std::optional<double> band_low;       ///< target band, as shares of the total
  std::optional<double> band_high;
};

/// Draws `runs` one below the other into `file` (.svg or .png) with gnuplot.
/// Throws InputError if the ending is another one, gnuplot is missing or fails, or `file` cannot be written.
void draw_trace_picture(const PictureFrame& frame, const std::vector<PictureRun>& runs,
                        const std::filesystem::path& file);

}  // namespace vramlab
