// The steps of a diagnosis: what refused, what alone would have made the request fit, which relations hold.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/oom_diagnosis.hpp"
#include "lab/oom_ranges.hpp"

namespace vramlab {

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
