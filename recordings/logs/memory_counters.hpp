// The counters of PyTorch's allocator as people paste them: the table of torch.cuda.memory_summary(), and
// what print(torch.cuda.memory_stats()) shows.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recordings/logs/printed_text.hpp"

namespace vramlab {

/// Counters of one device at one moment.
struct MemoryCounters {
  /// By the names of memory_stats(): "allocated_bytes.all.current", "num_ooms". Numbers of a summary's table
  /// are cut to whole units, and hold from `low` to `high`.
  std::map<std::string, PrintedSize, std::less<>> values;
  std::optional<int> device;
  bool from_summary = false;

  [[nodiscard]] const PrintedSize* find(std::string_view key) const;
};

/// All tables of memory_summary() in `text`, then all printed results of memory_stats(): as a dict, an
/// OrderedDict or JSON, flat or nested, on one line or many. Empty if it holds none.
std::vector<MemoryCounters> parse_memory_counters(std::string_view text);

}  // namespace vramlab
