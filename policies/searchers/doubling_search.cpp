// Doubling until a size fails, then bisection: the rule of most batch-size finders, with their differences
// and defects as options.
#include <algorithm>

#include "policies/contract/policy_set.hpp"
#include "policies/searchers/probe_books.hpp"

namespace vramlab {
namespace {

struct DoublingOptions {
  enum class Mode : std::uint8_t { binsearch, power };
  /// halves: of max_trials, half may double. doublings: max_trials counts good sizes, in mode power
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

const OptionTable<DoublingOptions>& doubling_table() {
  using O = DoublingOptions;
  static const OptionTable<DoublingOptions> rows{
      .owner = "binsearch",
      .options = {
          {"mode", one_of<&O::mode>({"binsearch", "power"}), "", 0, 0,
           "after the first size that fails: bisect, or take the last good one"},
          {"init", &O::init, "samples", 1, 1e6, "the first size"},
          {"max_trials", &O::max_trials, "", 0, 1000, "how long the search may go on"},
          {"counting", one_of<&O::counting>({"halves", "doublings", "trials"}), "", 0, 0,
           "what max_trials counts: trials, of which half may double; good sizes (in mode power all); "
           "trials"},
          {"safety_margin", &O::safety_margin, "share of the memory", 0.01, 1,
           "largest peak of a good size; a HIGHER value leaves LESS head-room"},
          {"reduction", &O::reduction, "factor", 0.01, 1, "multiplies the size that was found"},
          {"tolerance", &O::tolerance, "ratio", 0, 1,
           "bisection ends when the bad size is nearer to the good one than this share of it"},
          {"cards", one_of<&O::cards>({"fullest", "sum"}), "", 0, 0,
           "several cards: the fullest decides, or peaks and totals are summed"},
          {"below", one_of<&O::below>({"search", "give-back"}), "", 0, 0,
           "if even init fails: search below it, or return it all the same"},
          {"untried", one_of<&O::untried>({"never", "taken"}), "", 0, 0,
           "whether a size may be the answer that was not tried"},
          {"known_failures", one_of<&O::known_failures>({"skipped", "tried-again"}), "", 0, 0,
           "mode power, after walking down: whether the size above, which failed, is tried once more"},
          {"other_failures", one_of<&O::other_failures>({"stop", "too-large"}), "", 0, 0,
           "a failure that is not a lack of memory ends the search, or counts as a size too large"},
          {"steps", &O::steps, "", 1, 100,
           "of each probe in each phase; the optimizer's state is there from the second on"},
          {"all_phases", &O::all_phases, "", 0, 0, "probe every phase, or the first only"},
      }};
  return rows;
}

/// One search by these options. Sizes stay within the question's range.
class DoublingSearch final : public BookedSearcher {
 public:
  explicit DoublingSearch(const DoublingOptions& options)
      : BookedSearcher({options.safety_margin, options.cards,
                        options.other_failures == DoublingOptions::OtherFailures::too_large}),
        options_(options) {}

  [[nodiscard]] ProbeDepth depth() const override { return {options_.steps, options_.all_phases}; }

 private:
  SearcherAnswer first(const SearcherQuestion& question) override {
    const std::int64_t batch = std::clamp(options_.init, question.low, question.high);
    if (!may_try() && options_.untried == DoublingOptions::Untried::taken) return books().found(batch);
    return books().probe(batch);
  }

  SearcherAnswer next(const Probe& probe, bool good, const SearcherQuestion& question) override {
    if (good) ++good_probes_;
    return good ? after_good(probe.batch, question) : after_bad(probe.batch, question);
  }

  SearcherAnswer after_good(std::int64_t batch, const SearcherQuestion& question) {
    if (options_.mode == DoublingOptions::Mode::binsearch && books().bad() > 0) return bisect(question);
    const std::int64_t next = std::min(2 * batch, question.high);
    if (next == batch) return take(batch, question);
    if (books().bad() > 0) {  // mode power, on its way down
      const bool again = options_.known_failures == DoublingOptions::Known::tried_again && may_try();
      return again ? books().probe(next) : take(books().good(), question);
    }
    if (may_double()) return books().probe(next);
    const bool blindly =
        options_.untried == DoublingOptions::Untried::taken && options_.mode == DoublingOptions::Mode::power;
    return take(blindly ? next : batch, question);
  }

  SearcherAnswer after_bad(std::int64_t batch, const SearcherQuestion& question) {
    if (books().good() > 0) {
      return options_.mode == DoublingOptions::Mode::binsearch ? bisect(question)
                                                               : take(books().good(), question);
    }
    if (options_.below == DoublingOptions::Below::give_back) return books().found(batch);
    const std::int64_t next = batch / 2;
    if (next < question.low) return books().none();
    // The peer takes it that one sample always fits.
    const bool blindly = options_.untried == DoublingOptions::Untried::taken;
    if (blindly && next <= 1 && options_.mode == DoublingOptions::Mode::binsearch) return books().found(next);
    if (may_try()) return books().probe(next);
    return blindly ? books().found(next) : books().none();
  }

  SearcherAnswer bisect(const SearcherQuestion& question) {
    const std::int64_t good = books().good();
    const std::int64_t gap = books().bad() - good;
    const bool close = static_cast<double>(gap) <= options_.tolerance * static_cast<double>(good);
    if (gap <= 1 || close || !may_try()) return take(good, question);
    return books().probe(good + gap / 2);
  }

  SearcherAnswer take(std::int64_t batch, const SearcherQuestion& question) const {
    const auto reduced = static_cast<std::int64_t>(static_cast<double>(batch) * options_.reduction);
    return books().found(std::max(question.low, reduced));
  }

  [[nodiscard]] bool may_double() const {
    if (options_.counting == DoublingOptions::Counting::halves)
      return books().trials() < options_.max_trials / 2;
    return may_try();
  }

  [[nodiscard]] bool may_try() const {
    if (options_.counting != DoublingOptions::Counting::doublings)
      return books().trials() < std::max(options_.max_trials, std::int64_t{1});
    if (options_.mode == DoublingOptions::Mode::power) return books().trials() < options_.max_trials;
    return good_probes_ <= options_.max_trials;
  }

  DoublingOptions options_;
  std::int64_t good_probes_ = 0;
};

// The published original. Everything that is not named is repaired.
OptionMap faithful(const char* mode) {
  return {{"mode", mode},         {"counting", "halves"},          {"cards", "sum"},
          {"below", "give-back"}, {"other_failures", "too-large"}, {"steps", 1},
          {"all_phases", false}};
}

SearcherEntry entry(std::string name, std::string summary, std::vector<PolicyProfile> profiles) {
  const std::string first = profiles.back().name;
  return {.name = std::move(name),
          .summary = std::move(summary),
          .options = doubling_table().describe(),
          .profiles = std::move(profiles),
          .default_profile = first,
          .make = maker<DoublingSearch>(doubling_table())};
}

}  // namespace

SearcherEntry binsearch_entry() {
  return entry("binsearch", "doubles until a size does not fit, then bisects, then takes 95 %",
               {{"faithful", "the original with its defects", faithful("binsearch")},
                {"repaired", "fullest card, searches below init, nothing fits = error"}});
}

SearcherEntry power_entry() {
  return entry(
      "power", "doubles until a size does not fit and takes 95 % of the last that did",
      {{"faithful", "the original with its defects", faithful("power")},
       {"repaired", "fullest card, searches below init, nothing fits = error", {{"mode", "power"}}}});
}

// Lightning's batch size scaling.
SearcherEntry doubling_bisect_entry() {
  const OptionMap peer{{"init", 2}, {"counting", "doublings"}, {"safety_margin", 1.0}, {"reduction", 1.0}};
  return entry("doubling-bisect", "a peer's: doubles from 2 until a size fails, then bisects to the edge",
               {{"peer", "as published: an untried size may be the answer, a size that failed is tried again",
                 overlay(peer, {{"untried", "taken"}, {"known_failures", "tried-again"}})},
                {"repaired", "tries every size it answers with", peer}});
}

// NeMo's OOMptimizer: one search for each bucket of lengths.
SearcherEntry bucket_bisect_entry() {
  return entry("bucket-bisect", "a peer's: for each bucket, doubles from 32 and bisects to 5 %",
               {{"peer",
                 "as published",
                 {{"init", 32},
                  {"max_trials", 1000},
                  {"safety_margin", 1.0},
                  {"reduction", 1.0},
                  {"tolerance", 0.05}}}});
}

}  // namespace vramlab
