// The steps of a diagnosis: sizes known up to rounding, what refused, what alone would have made the request
// fit, which relations hold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/oom/diagnosis.hpp"
#include "recordings/logs/oom_log.hpp"

namespace vramlab {

/// A size in bytes known to lie in [low, high]; `value` is the likeliest. May be negative as a difference.
struct SizeRange {
  std::int64_t value = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;

  friend SizeRange operator+(const SizeRange& a, const SizeRange& b) {
    return {a.value + b.value, a.low + b.low, a.high + b.high};
  }
  friend SizeRange operator-(const SizeRange& a, const SizeRange& b) {
    return {a.value - b.value, a.low - b.high, a.high - b.low};
  }
  static constexpr SizeRange exactly(std::int64_t bytes) { return {bytes, bytes, bytes}; }
  [[nodiscard]] SizeRange at_least_zero() const {
    return {std::max<std::int64_t>(value, 0), std::max<std::int64_t>(low, 0),
            std::max<std::int64_t>(high, 0)};
  }
  [[nodiscard]] Bytes bytes() const { return static_cast<Bytes>(std::max<std::int64_t>(value, 0)); }
};

enum class Answer : std::uint8_t { no, maybe, yes };

/// Whether a > b, as far as rounding lets one say.
inline Answer exceeds(const SizeRange& a, const SizeRange& b) {
  if (a.low > b.high) return Answer::yes;
  return a.high > b.low ? Answer::maybe : Answer::no;
}

/// The sizes a diagnosis works with. `total` and `free` are needed, the rest has its neutral value.
struct OomSizes {
  SizeRange tried;
  SizeRange total;
  SizeRange free;
  std::optional<SizeRange> allowed;
  SizeRange live;         ///< allocated to tensors, without idle memory of private pools
  SizeRange idle;         ///< idle in the default pools
  SizeRange pool_idle;    ///< idle in private pools
  SizeRange reserved;     ///< live + idle + pool_idle
  SizeRange outside;      ///< in use on the card, not reserved by PyTorch here: total - free - reserved
  SizeRange own_context;  ///< of `outside`, this process's share
  SizeRange others;       ///< of `outside`, other processes' share
  /// The message says whose the memory outside is; else the shares are assumed.
  bool others_listed = false;
  /// The message lists this process under another number, as in containers; found from the sums.
  std::optional<OomMessage::Process> own_listed_as;
  bool own_is_uncertain = false;  ///< others of the listed could hold what is reserved, too
  /// Listed processes that hold about as much as a context does: ranks of this job that touched this card.
  std::vector<OomMessage::Process> small_equals;
  bool driver_pool = false;    ///< cudaMallocAsync: `own_context` includes what the driver's pool withholds
  bool free_is_bound = false;  ///< no free memory is printed (XPU): at most total - reserved

  [[nodiscard]] SizeRange all_idle() const { return idle + pool_idle; }
};

SizeRange range_of(const PrintedSize& size);

/// Empty if the message lacks one of the figures that nothing can be said without.
std::optional<OomSizes> oom_sizes(const OomMessage& message);

/// The largest context that was measured: an H100 with torch 2.11 (771 MiB, R10.4). Other cards were not.
inline constexpr std::int64_t kLargestMeasuredContext = 771LL << 20;

/// What a context with NCCL and library handles may hold (1,690 MiB measured on two H100), rounded up. Memory
/// outside PyTorch up to here may all be this process's where the message does not say.
inline constexpr std::int64_t kLargestLikelyContext = 2048LL << 20;

/// What the listed processes leave unaccounted for is other processes' from here on; less may be the
/// driver's.
inline constexpr std::int64_t kLeastOfOthers = 512LL << 20;

/// Who refused the request.
struct OomRefusal {
  Answer by_limit = Answer::no;
  Answer by_device = Answer::no;
  /// No limit is printed and the card had room, but a round memory fraction explains the refusal to within 1
  /// % of the card: inferred, not printed.
  bool limit_is_deduced = false;

  [[nodiscard]] bool limit_binds() const { return by_limit != Answer::no && by_limit >= by_device; }
  [[nodiscard]] bool device_binds() const { return by_device != Answer::no && by_device >= by_limit; }
  [[nodiscard]] bool is_explained() const { return by_limit != Answer::no || by_device != Answer::no; }
};

OomRefusal refusal_of(const OomSizes& sizes, OomLayout layout);

/// What is imagined away.
struct Remedy {
  bool idle = false;     ///< idle memory is in one piece, or given back
  bool others = false;   ///< the other processes are gone
  bool limit = false;    ///< no memory fraction is set
  bool outside = false;  ///< this process holds no more outside PyTorch than a context
};

/// Whether the request would have fit then.
bool would_fit(const OomSizes& sizes, const OomRefusal& refusal, Remedy remedy);

/// Whether idle memory in one piece would have been enough.
inline bool idle_would_do(const OomSizes& sizes, const OomRefusal& refusal) {
  return would_fit(sizes, refusal, {.idle = true});
}

/// Of the causes that alone would have made the difference, the one that withheld most memory; "too big" if
/// not even all of them together would have helped.
OomCause cause_of(const OomSizes& sizes, const OomRefusal& refusal);

/// What this process holds outside PyTorch beyond a measured context; 0 where a context may explain it, or
/// where it is not known. Of cudaMallocAsync: what its pool withholds.
SizeRange excess_outside(const OomSizes& sizes);

/// Memory in use that the message shares out to nobody, and that an assumed context may explain.
SizeRange unassigned(const OomSizes& sizes);

/// More reserved than the card has: the driver of Windows moves memory to the computer's.
bool is_paged(const OomSizes& sizes);

/// What was missing where the request was refused: above the limit, or asked - free.
SizeRange shortfall(const OomSizes& sizes, const OomRefusal& refusal);

/// The least and largest memory fraction that explain a refusal whose limit is not printed.
struct FractionRange {
  double low = 0;
  double high = 0;
  std::optional<double> round;  ///< a multiple of 0.05 in between, if there is one
};
FractionRange deduced_fraction(const OomSizes& sizes);

/// A difference that only rounding hides: "less than the printed figures show (at most 10.49 MiB)".
std::string shortfall_text(const SizeRange& missing);

/// Every relation that the figures of the message must keep.
std::vector<FigureCheck> check_figures(const OomMessage& message, const OomSizes& sizes,
                                       const OomRefusal& refusal);

/// What each measure would have done.
std::vector<OomAdvice> advice_for(const OomDiagnosis& diagnosis, const OomMessage& message,
                                  const OomSizes& sizes, const OomRefusal& refusal, const OomLog& log);

/// What may have refused a request for which more was free than was asked, the likeliest first.
std::vector<PossibleCause> possible_causes(const OomMessage& message, const OomSizes& sizes,
                                           const OomLog& log);

/// Fills what a person reads first: key figures, notes, commands, steps, what to check.
void write_answer(const OomMessage& message, const OomSizes& sizes, const OomRefusal& refusal,
                  const OomLog& log, OomDiagnosis& diagnosis);

/// A line for a shell that sets `setting` of the allocator beside those of the log that were in force, with
/// the name of the variable that the backend and the version read.
std::string conf_command(const std::string& setting, const OomMessage& message, const OomLog& log);

/// Diagnoses messages without PyTorch's figures: of Apple's GPUs, JAX, TensorFlow, drivers, the computer.
void diagnose_other_layout(const OomMessage& message, const OomLog& log, OomDiagnosis& diagnosis);

/// A difference or sum for people, such as "112.94 MiB"; negative ones are shown as 0.
std::string size_text(const SizeRange& size);

}  // namespace vramlab
