// Why an allocation failed, from the figures of its error message or from torch.cuda.memory_stats().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/json.hpp"
#include "recordings/logs/oom_message.hpp"

namespace vramlab {

enum class OomCause : std::uint8_t {
  too_big,          ///< live memory and the request exceed the card, whatever the settings and neighbours
  fragmentation,    ///< enough is idle or free, but not in one piece
  fraction_limit,   ///< the process's memory fraction refused what the card had free
  other_processes,  ///< neighbours on the card hold what is missing
  not_memory,       ///< no lack of device memory: another error, or the computer's own memory
  inconsistent,     ///< figures that cannot hold together, and rounding does not explain it
  undetermined,     ///< lack of memory, but the text has no figures to tell why
};

/// Such as "limit set by fraction".
const char* name_of(OomCause cause);

/// One figure: given, or computed from given ones. All in bytes.
struct ExplainedFigure {
  std::string name;  ///< JSON key, such as "allocated"
  Bytes bytes = 0;
  Bytes low = 0;  ///< what rounding leaves open
  Bytes high = 0;
  bool given = true;  ///< false: computed
  std::string meaning;
};

/// One relation that the figures must keep.
struct FigureCheck {
  enum class Outcome : std::uint8_t { holds, explained, broken };
  std::string what;  ///< "allocated + idle <= total - free", with the figures
  Outcome outcome{};
  std::string remark;  ///< for `explained` and `broken`
};

/// What a measure would have done here.
struct OomAdvice {
  enum class Helps : std::uint8_t { yes, perhaps, no };
  std::string measure;
  Helps helps{};
  std::string why;  ///< with this case's figures
};

struct OomDiagnosis {
  std::string layout;
  std::vector<ExplainedFigure> figures;
  std::vector<FigureCheck> checks;
  OomCause cause = OomCause::undetermined;
  std::string verdict;  ///< one line
  /// What was missing at the place that refused: above the limit, or above the free memory. Empty if unknown.
  std::optional<std::int64_t> short_by;
  std::optional<Bytes> idle;    ///< reserved by this process, not allocated
  std::optional<Bytes> others;  ///< held by other processes; an estimate if the message does not list them
  std::vector<OomAdvice> advice;
};

/// Throws InputError (place `name`) if the text holds no message about memory.
OomDiagnosis diagnose_oom(const OomMessage& message, const std::string& name);

/// From the counters of torch.cuda.memory_stats(), flat ("allocated_bytes.all.current") or nested.
/// Throws InputError if they are not that.
OomDiagnosis diagnose_memory_stats(const Json& stats, const std::string& name);

}  // namespace vramlab
