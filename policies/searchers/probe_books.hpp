// What every searcher keeps and does: which sizes were good and bad, when a probe counts as good, and which
// failure ends a search.
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
  double share = 1;                             ///< of the memory, that probes may reserve
};

/// The peak of `probe` over the total: on the fullest card, or the sum of peaks over the sum of totals.
double probed_usage(const Probe& probe, CardsRule rule, Bytes ProbedCard::*peak = &ProbedCard::peak);

/// The largest good and the smallest bad size so far, and the words for them.
class ProbeBooks {
 public:
  explicit ProbeBooks(const ProbeRule& rule) : rule_(rule) {}

  /// Enters a probe; true if it was good.
  bool enter(const Probe& probe);

  /// The answer to a failure that ends the search; empty where it goes on. Held memory would make every
  /// further size look too large, and what is not a lack of memory no smaller batch mends.
  [[nodiscard]] std::optional<SearcherAnswer> ends(const Probe& probe) const;

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
  bool last_ran_ = false;
  std::string last_;
};

/// A searcher that enters each probe into its books, and goes on by its own rule unless that ends the search.
class BookedSearcher : public Searcher {
 public:
  SearcherAnswer decide(const SearcherQuestion& question, const Observation& observation) final;

 protected:
  explicit BookedSearcher(const ProbeRule& rule) : books_(rule) {}

  /// Before the first probe.
  virtual SearcherAnswer first(const SearcherQuestion& question) = 0;
  /// After `probe`, which was entered as `good` or bad.
  virtual SearcherAnswer next(const Probe& probe, bool good, const SearcherQuestion& question) = 0;

  [[nodiscard]] const ProbeBooks& books() const { return books_; }

 private:
  ProbeBooks books_;
};

}  // namespace vramlab
