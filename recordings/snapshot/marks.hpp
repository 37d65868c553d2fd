// What was noted down beside a snapshot while its history was recorded: NAME.truth.json and NAME.marks.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/caching/allocator_settings.hpp"

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

/// NAME.truth.json (or .gz, .zst) beside the snapshot NAME.pickle (or .gz, .zst), if there is one.
std::optional<std::filesystem::path> find_truth_file(const std::filesystem::path& snapshot);

/// The same for any other ending than ".truth.json".
std::optional<std::filesystem::path> find_beside(const std::filesystem::path& snapshot,
                                                 const std::string& ending);

/// The version of PyTorch that a truth file names, if it can be read.
std::optional<TorchVersion> torch_version(const std::optional<TruthFile>& truth);

/// What the truth file beside the snapshot holds, if there is one.
std::optional<TruthFile> truth_beside(const std::filesystem::path& snapshot);

// When each step of a recording ended, and with which parameters: NAME.marks.json beside NAME.pickle.
//
// A JSON object:
//   marks   [{t_us, phase: "step" or "other", label, params: {NAME: integer}, oom: true or false,
//           mem_get_info: [free, total]}], in order of time. `params` may also hold per-item values: lists of
//           integers or of words with one entry an item, directly or in `micro_batches`, a list of one such
//           object. `mem_get_info` is what torch.cuda.mem_get_info() said there; it may be missing.
//   world   how many processes the program had, and
//   rank    which of them was recorded, from 0; both may be missing

/// The parameters of one recorded or measured step.
struct StepParameters {
  std::map<std::string, std::int64_t> scalars;
  std::map<std::string, std::vector<std::int64_t>> lists;  ///< one entry an item
  std::map<std::string, std::vector<std::string>> words;   ///< one entry an item

  friend bool operator==(const StepParameters&, const StepParameters&) = default;
};

/// One moment of the recording. The history's entries up to its time belong to it.
struct StepMark {
  std::int64_t time_us = 0;  ///< Unix time
  bool is_step = false;      ///< what ended here was a step, not building or validation
  bool oom = false;          ///< it failed for lack of memory
  std::string label;
  StepParameters parameters;
  /// Bytes of the card that were not free then; empty = not recorded.
  std::optional<Bytes> device_used;
  Bytes device_total = 0;  ///< of the card, where `device_used` is known
};

/// Reads a marks file (plain, gzip or zstd). Throws InputError naming the place of what is missing or wrong.
std::vector<StepMark> read_marks_file(const std::filesystem::path& file);

/// The same from text; `name` stands for the file in errors.
std::vector<StepMark> parse_marks_file(std::string_view text, const std::string& name);

/// Which of the processes of a program was recorded.
struct RecordedRank {
  std::uint32_t world = 1;  ///< how many there were
  std::uint32_t rank = 0;   ///< counted from 0
};

/// What `world` and `rank` of a marks or truth file say; empty where it has no `world`. Throws InputError if
/// they contradict each other.
std::optional<RecordedRank> read_recorded_rank(const std::filesystem::path& file);

/// Only labels, times and used memory of a marks file; whatever else its marks hold is not looked at.
std::vector<StepMark> read_mark_times(const std::filesystem::path& file);

}  // namespace vramlab
