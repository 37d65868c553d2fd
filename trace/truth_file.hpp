// What PyTorch itself counted while a snapshot's history was recorded: NAME.truth.json beside NAME.pickle.
//
// A JSON object (plain, gzip or zstd):
//   workload, tag, torch   what was recorded, with which version
//   conf                   allocator settings string
//   cap_mib                the limit in MiB that was set through the memory fraction; 0 = none
//   total_memory           bytes of the device
//   entries                length of the history (one more than the snapshot has: its own entry, R11.4)
//   marks                  [{label, t_us, stats, mem_get_info: [free, total]}], in order of time; stats is
//                          torch.cuda.memory_stats()
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/units.hpp"

namespace vramlab {

/// The counters at one moment of the recording.
struct TruthMark {
  std::string label;         ///< what was done before it; after "OOM " the text of the error, cut off
  std::int64_t time_us = 0;  ///< Unix time; the history's entries up to it belong to the mark
  std::vector<std::optional<std::int64_t>> stats;  ///< in the order of stat_names(); empty = not recorded
  Bytes device_free = 0;
  Bytes device_total = 0;
};

struct TruthFile {
  std::string workload;
  std::string tag;
  std::string torch;
  std::string conf;
  std::optional<Bytes> limit;  ///< as PyTorch computes it: trunc(fraction · total), R9.1
  Bytes total_memory = 0;
  std::uint64_t entries = 0;
  std::vector<TruthMark> marks;
};

/// Reads a truth file. Throws InputError naming the place of what is missing or of the wrong type.
TruthFile read_truth_file(const std::filesystem::path& file);

/// The same from text; `name` stands for the file in errors.
TruthFile parse_truth_file(std::string_view text, const std::string& name);

/// NAME.truth.json or NAME.truth.json.gz beside the snapshot NAME.pickle or NAME.pickle.gz, if there is one.
std::optional<std::filesystem::path> find_truth_file(const std::filesystem::path& snapshot);

/// The same for any other ending than ".truth.json".
std::optional<std::filesystem::path> find_beside(const std::filesystem::path& snapshot,
                                                 const std::string& ending);

}  // namespace vramlab
