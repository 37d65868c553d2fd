// Reads the openb lists of pods and nodes (Alibaba's GPU cluster) as jobs by need and duration.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/workload/cluster_books.hpp"
#include "sim/workload/job.hpp"

namespace vramlab {

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
