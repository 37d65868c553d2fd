// A whole log around out-of-memory messages: who wrote them, and what else in it bears on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recordings/logs/memory_counters.hpp"
#include "recordings/logs/oom_message.hpp"

namespace vramlab {

/// One message of a log, and how often its writer repeated it word for word.
struct LoggedOom {
  OomMessage message;
  std::string writer;  ///< "rank 3" or "RayWorker pid=71"; empty if the log does not say
  std::size_t times = 1;
};

/// A process in nvidia-smi's table.
struct SmiProcess {
  int gpu = 0;
  std::uint64_t pid = 0;
  std::string name;
  std::optional<Bytes> bytes;  ///< empty for "N/A", as on Windows
};

/// "12000MiB / 24576MiB", one for each card in the order of the table.
struct SmiCard {
  Bytes used = 0;
  Bytes total = 0;
};

struct OomLog {
  std::vector<LoggedOom> failures;  ///< in the order in which their writers come first in the text
  std::vector<MemoryCounters> counters;
  std::vector<SmiCard> smi_cards;
  std::vector<SmiProcess> smi_processes;
  std::vector<std::string> settings;  ///< allocator settings that were in force, "max_split_size_mb:128"
  std::vector<std::string> settings_of_frameworks;  ///< "XLA_PYTHON_CLIENT_MEM_FRACTION=", with any value
  bool is_before_2_5 = false;                       ///< names the class of the error as older versions do
  std::string torch_version;                        ///< "2.3" if it stands in the text
  std::string platform;      ///< "Windows", "Linux", "macOS", "Jetson" as paths and names tell; may be empty
  bool pins_memory = false;  ///< the traceback leads through pinned memory of the computer
};

OomLog read_oom_log(std::string_view text);

}  // namespace vramlab
