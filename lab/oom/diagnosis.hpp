// Why an allocation failed, from the figures of its error message or from torch.cuda.memory_stats().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/json.hpp"
#include "recordings/logs/oom_log.hpp"

namespace vramlab {

enum class OomCause : std::uint8_t {
  too_big,          ///< live memory and the request exceed the card, whatever the settings and neighbours
  fragmentation,    ///< enough is idle or free, but not in one piece
  fraction_limit,   ///< the process's memory fraction refused what the card had free
  other_processes,  ///< neighbours on the card hold what is missing
  outside_pytorch,  ///< this process holds what is missing, but not in PyTorch's allocator
  driver_pool,      ///< the driver's pool of cudaMallocAsync withholds it
  idle_block,       ///< one idle block was large enough, but not free for this request
  not_memory,       ///< no lack of device memory: another error, or the computer's own memory
  inconsistent,     ///< figures that cannot hold together, and rounding does not explain it
  undetermined,     ///< memory was refused, but the text does not tell why
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
  enum class Outcome : std::uint8_t { holds, explained, broken, open };
  std::string what;  ///< "allocated + idle <= total - free", with the figures
  Outcome outcome{};
  std::string remark;  ///< for all but `holds`
};

/// What a measure would have done here.
struct OomAdvice {
  enum class Helps : std::uint8_t { yes, perhaps, no };
  std::string measure;
  Helps helps{};
  std::string why;  ///< with this case's figures
};

/// What may have been the cause where the figures leave it open.
struct PossibleCause {
  std::string cause;
  std::string speaks_for;  ///< or against
  std::string how_to_tell;
};

struct OomDiagnosis {
  std::string layout;
  std::vector<ExplainedFigure> figures;
  std::vector<FigureCheck> checks;
  OomCause cause = OomCause::undetermined;
  std::string verdict;  ///< one line
  /// What was missing at the place that refused: above the limit, or above the free memory. Empty if unknown.
  std::optional<std::int64_t> short_by;
  std::optional<std::int64_t> short_by_at_most;  ///< where rounding hides the shortfall
  std::optional<Bytes> idle;                     ///< reserved by this process, not allocated
  std::optional<Bytes> others;  ///< held by other processes; an estimate if the message does not list them
  std::vector<OomAdvice> advice;
  std::vector<PossibleCause> possible_causes;  ///< if the cause is undetermined, the likeliest first
  bool paging = false;                         ///< more allocated than the card has
  std::optional<std::uint64_t> own_pid;        ///< the listed process that is this one, as the sums show
  std::vector<std::string> key_figures;        ///< lines: the figures that decide
  std::vector<std::string> notes;              ///< lines: what was assumed or inferred, and what that means
  std::vector<std::string> commands;           ///< lines to copy
  std::vector<std::string> steps;              ///< lines: what to do, the most promising first
  std::vector<std::string> checks_next;        ///< lines: how to make sure
};

/// Of one message; what else stands in its log (settings, system, counters) bears on the answer.
/// Throws InputError (place `name`) if the message is none about memory.
OomDiagnosis diagnose_oom(const OomMessage& message, const std::string& name, const OomLog& log = {});

/// From the counters of the allocator, without a message.
OomDiagnosis diagnose_counters(const MemoryCounters& counters);

/// From the JSON of torch.cuda.memory_stats(), flat ("allocated_bytes.all.current") or nested.
/// Throws InputError if it is not that.
OomDiagnosis diagnose_memory_stats(const Json& stats, const std::string& name);

}  // namespace vramlab
