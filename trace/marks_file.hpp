// When each step of a recording ended, and with which parameters: NAME.marks.json beside NAME.pickle.
//
// A JSON object:
//   marks   [{t_us, phase: "step" or "other", label, params: {NAME: integer}, oom: true or false}], in order
//           of time. `params` may also hold per-item values: lists of integers or of words with one entry an
//           item, directly or in `micro_batches`, a list of one such object.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vramlab {

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
};

/// Reads a marks file (plain, gzip or zstd). Throws InputError naming the place of what is missing or wrong.
std::vector<StepMark> read_marks_file(const std::filesystem::path& file);

/// The same from text; `name` stands for the file in errors.
std::vector<StepMark> parse_marks_file(std::string_view text, const std::string& name);

}  // namespace vramlab
