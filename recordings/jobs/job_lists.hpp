// Readers of job lists: an own CSV format, traces of Gavel, and those of the OpenB cluster.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "recordings/input_file.hpp"
#include "sim/runs/cluster_books.hpp"
#include "sim/runs/job.hpp"

namespace vramlab {

/// Columns: arrival_s, duration_s, need (a size); and, where they are there: name, use (a size), cards,
/// priority, expected_s, crash_after_s. Throws InputError with the line of everything that does not read and
/// of a name that an earlier job has, for any other column, and for a file without jobs.
std::vector<JobSpec> read_job_list(InputFile& file);

// Reads job traces of the Gavel scheduler, with its measured throughputs, as jobs by share and duration.

struct GavelOptions {
  std::string gpu = "v100";         ///< a kind of card in the file of throughputs
  std::int64_t share_milli = 1000;  ///< of each card's memory: the trace says nothing of memory
};

struct GavelTrace {
  std::vector<JobSpec> jobs;
  std::size_t lines = 0;
  std::size_t without_throughput =
      0;  ///< left out: never measured on that many cards of this kind, or did not run
};

/// One job a line, tabs between: type, command, (folder,) argument, data flag, steps, and either arrival and
/// scale factor (7 columns) or scale factor, weight, SLO and arrival (10). A job takes scale factor cards for
/// steps / throughput seconds, rounded to the nanosecond and at least one.
/// Throws InputError with the line of anything that does not read, and for a kind of card without figures.
GavelTrace read_gavel(const std::filesystem::path& trace, const std::filesystem::path& throughputs,
                      const GavelOptions& options = {});

// Reads the openb lists of pods and nodes (Alibaba's GPU cluster) as jobs by need and duration.

/// What the lists do not say.
struct OpenbOptions {
  Bytes anonymous_card = 32_GiB;  ///< memory of the anonymised cards G2 and G3: assumed
};

/// The cluster and the jobs of two lists, and what was done to read them.
struct OpenbTrace {
  ClusterSetup cluster;
  std::vector<JobSpec> jobs;
  std::size_t pods = 0;              ///< lines of the list
  std::size_t without_gpu = 0;       ///< skipped
  std::size_t never_scheduled = 0;   ///< duration taken as deletion − creation
  std::size_t without_duration = 0;  ///< 0 s in the list; run for 1 s
  std::vector<std::string> assumed;  ///< kinds of cards whose memory is assumed
};

/// Arrival is creation_time, duration deletion − scheduled, the demand gpu_milli thousandths of whichever
/// card the pod is placed on, of the kinds that gpu_spec allows; several GPUs are whole ones of one node.
/// memory_mib is host memory and is not used. Throws InputError with the line of anything that does not read.
OpenbTrace read_openb(const std::filesystem::path& pods, const std::filesystem::path& nodes,
                      const OpenbOptions& options = {});

}  // namespace vramlab
