// The steps of a diagnosis: sizes known up to rounding, what refused, what alone would have made the request
// fit, which relations hold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/oom/diagnosis.hpp"
#include "recordings/logs/oom_message.hpp"

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
  bool others_listed = false;

  [[nodiscard]] SizeRange all_idle() const { return idle + pool_idle; }
};

/// Empty if the message lacks one of the figures that nothing can be said without.
std::optional<OomSizes> oom_sizes(const OomMessage& message);

/// What of the memory outside PyTorch is taken for this process's own context where the message does not say:
/// the most that was measured on an H100 with torch 2.11 (771 MiB, R10.4).
inline constexpr std::int64_t kLargestMeasuredContext = 771LL << 20;

/// Who refused the request.
struct OomRefusal {
  Answer by_limit = Answer::no;
  Answer by_device = Answer::no;
  /// No limit is printed and the card had room: a memory fraction is the only refusal left that a version
  /// which does not print it knows (R4.12b).
  bool limit_is_deduced = false;

  [[nodiscard]] bool limit_binds() const { return by_limit != Answer::no && by_limit >= by_device; }
  [[nodiscard]] bool device_binds() const { return by_device != Answer::no && by_device >= by_limit; }
  [[nodiscard]] bool is_explained() const { return by_limit != Answer::no || by_device != Answer::no; }
};

OomRefusal refusal_of(const OomSizes& sizes, OomLayout layout);

/// What is imagined away.
struct Remedy {
  bool idle = false;    ///< idle memory is in one piece, or given back
  bool others = false;  ///< the other processes are gone
  bool limit = false;   ///< no memory fraction is set
};

/// Whether the request would have fit then.
bool would_fit(const OomSizes& sizes, const OomRefusal& refusal, Remedy remedy);

/// Of the causes that alone would have made the difference, the one that withheld most memory; "too big" if
/// not even all of them together would have helped.
OomCause cause_of(const OomSizes& sizes, const OomRefusal& refusal);

/// What was missing where the request was refused. Below a deduced limit it follows from the round fraction
/// that fits; without one nothing is known but that it is at most the request (value 0).
SizeRange shortfall(const OomSizes& sizes, const OomRefusal& refusal);

/// The least and largest memory fraction that explain a refusal whose limit is not printed.
struct FractionRange {
  double low = 0;
  double high = 0;
  std::optional<double> round;  ///< a multiple of 0.05 in between, if there is one
};
FractionRange deduced_fraction(const OomSizes& sizes);

/// Every relation that the figures of the message must keep.
std::vector<FigureCheck> check_figures(const OomMessage& message, const OomSizes& sizes,
                                       const OomRefusal& refusal);

/// What each measure would have done.
std::vector<OomAdvice> advice_for(OomCause cause, const OomMessage& message, const OomSizes& sizes,
                                  const OomRefusal& refusal);

/// A difference or sum for people, such as "112.94 MiB"; negative ones are shown as 0.
std::string size_text(const SizeRange& size);

}  // namespace vramlab
