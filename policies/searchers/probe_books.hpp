// What every searcher keeps: which sizes were good and bad, and when a probe counts as good.
#pragma once

#include <cstdint>
#include <string>

#include "core/observation.hpp"
#include "policies/contract/searcher.hpp"

namespace vramlab {

/// When a probe counts as good.
struct ProbeRule {
  double safety_margin = 1;  ///< largest share of the memory that a peak may use
  CardsRule cards = CardsRule::fullest;
  bool any_failure = false;                     ///< a failure of any kind counts as too large
  Bytes ProbedCard::*peak = &ProbedCard::peak;  ///< which peak: of allocated or of reserved memory
};

/// The peak of `probe` over the total: on the fullest card, or the sum of peaks over the sum of totals.
double probed_usage(const Probe& probe, CardsRule rule, Bytes ProbedCard::*peak = &ProbedCard::peak);

/// The largest good and the smallest bad size so far, and the words for them.
class ProbeBooks {
 public:
  explicit ProbeBooks(const ProbeRule& rule) : rule_(rule) {}

  /// Enters a probe; true if it was good.
  bool enter(const Probe& probe);

  /// The answer to a failure that ends the search; null where it goes on. Held memory would make every
  /// further size look too large, and what is no lack of memory no smaller batch mends.
  [[nodiscard]] bool ends(const Probe& probe, SearcherAnswer& answer) const;

  [[nodiscard]] std::int64_t good() const { return good_; }  ///< largest good size; 0 = none
  [[nodiscard]] std::int64_t bad() const { return bad_; }    ///< smallest bad size; 0 = none
  [[nodiscard]] std::int64_t trials() const { return trials_; }

  /// "probe 64", with what the last probe found.
  [[nodiscard]] SearcherAnswer probe(std::int64_t batch) const;
  /// Takes `batch`, and says between which sizes the edge lies.
  [[nodiscard]] SearcherAnswer found(std::int64_t batch) const;
  [[nodiscard]] SearcherAnswer none() const;

 private:
  ProbeRule rule_;
  std::int64_t good_ = 0;
  std::int64_t bad_ = 0;
  std::int64_t trials_ = 0;
  std::string last_;
};

}  // namespace vramlab
