// Reads job traces of the Gavel scheduler, with its measured throughputs, as jobs by share and duration.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/workload/job.hpp"

namespace vramlab {

struct GavelOptions {
  std::string gpu = "v100";         ///< a kind of card in the file of throughputs
  std::int64_t share_milli = 1000;  ///< of each card's memory: the trace says nothing of memory
};

struct GavelTrace {
  std::vector<JobSpec> jobs;
  std::size_t lines = 0;
  std::size_t without_throughput =
      0;  ///< left out: never measured on so many cards of this kind, or did not run
};

/// One job a line, tabs between: type, command, (folder,) argument, data flag, steps, and either arrival and
/// scale factor (7 columns) or scale factor, weight, SLO and arrival (10). A job takes scale factor cards for
/// steps / throughput seconds, rounded to the nanosecond and at least one.
/// Throws InputError with the line of anything that does not read, and for a kind of card without figures.
GavelTrace read_gavel(const std::filesystem::path& trace, const std::filesystem::path& throughputs,
                      const GavelOptions& options = {});

}  // namespace vramlab
