// Doubling until a size fails, then bisection: the rule of most batch-size finders, with their differences
// and defects as options.
#pragma once

#include <cstdint>

#include "policies/contract/options.hpp"
#include "policies/contract/policy_set.hpp"
#include "policies/searchers/probe_books.hpp"

namespace vramlab {

struct DoublingOptions {
  enum class Mode : std::uint8_t { binsearch, power };
  /// halves: of max_trials, half may double (P4.1). doublings: max_trials counts good sizes, in mode power
  /// all sizes (the peer's). unlimited doublings within max_trials trials: trials.
  enum class Counting : std::uint8_t { halves, doublings, trials };
  enum class Below : std::uint8_t { search, give_back };
  enum class Untried : std::uint8_t { never, taken };
  enum class Known : std::uint8_t { skipped, tried_again };
  enum class OtherFailures : std::uint8_t { stop, too_large };

  Mode mode = Mode::binsearch;
  std::int64_t init = 1;
  std::int64_t max_trials = 25;
  Counting counting = Counting::trials;
  double safety_margin = 0.9;
  double reduction = 0.95;
  double tolerance = 0;
  CardsRule cards = CardsRule::fullest;
  Below below = Below::search;
  Untried untried = Untried::never;
  Known known_failures = Known::skipped;
  OtherFailures other_failures = OtherFailures::stop;
  std::int64_t steps = 2;
  bool all_phases = true;
};

/// One search by these options. Sizes stay within the question's range.
class DoublingSearch final : public Searcher {
 public:
  explicit DoublingSearch(const DoublingOptions& options);

  SearcherAnswer decide(const SearcherQuestion& question, const Observation& observation) override;
  [[nodiscard]] ProbeDepth depth() const override { return {options_.steps, options_.all_phases}; }

 private:
  SearcherAnswer first(const SearcherQuestion& question);
  SearcherAnswer after_good(std::int64_t batch, const SearcherQuestion& question);
  SearcherAnswer after_bad(std::int64_t batch, const SearcherQuestion& question);
  SearcherAnswer bisect(const SearcherQuestion& question);
  SearcherAnswer take(std::int64_t batch, const SearcherQuestion& question) const;
  [[nodiscard]] bool may_double() const;
  [[nodiscard]] bool may_try() const;

  DoublingOptions options_;
  ProbeBooks books_;
  std::int64_t good_probes_ = 0;
};

}  // namespace vramlab
