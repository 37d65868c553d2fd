#include "policies/searchers/doubling_search.hpp"

#include <algorithm>
#include <cmath>

namespace vramlab {
namespace {

using O = DoublingOptions;

const OptionTable<O>& table() {
  static const OptionTable<O> rows{
      .owner = "binsearch",
      .options = {
          {"mode", choice_of<&O::mode>({"binsearch", "power"}), "", 0, 0,
           "after the first size that fails: bisect, or take the last good one"},
          {"init", &O::init, "samples", 1, 1e6, "the first size"},
          {"max_trials", &O::max_trials, "", 0, 1000, "how long the search may go on"},
          {"counting", choice_of<&O::counting>({"halves", "doublings", "trials"}), "", 0, 0,
           "what max_trials counts: trials, of which half may double; good sizes (in mode power all); "
           "trials"},
          {"safety_margin", &O::safety_margin, "share of the memory", 0.01, 1,
           "largest peak of a good size; a HIGHER value leaves LESS head-room"},
          {"reduction", &O::reduction, "factor", 0.01, 1, "multiplies the size that was found"},
          {"tolerance", &O::tolerance, "ratio", 0, 1,
           "bisection ends when the bad size is nearer to the good one than this share of it"},
          {"cards", choice_of<&O::cards>({"fullest", "sum"}), "", 0, 0,
           "several cards: the fullest decides, or peaks and totals are summed"},
          {"below", choice_of<&O::below>({"search", "give-back"}), "", 0, 0,
           "if even init fails: search below it, or return it all the same"},
          {"untried", choice_of<&O::untried>({"never", "taken"}), "", 0, 0,
           "whether a size may be the answer that was not tried"},
          {"known_failures", choice_of<&O::known_failures>({"skipped", "tried-again"}), "", 0, 0,
           "mode power, after walking down: whether the size above, which failed, is tried once more"},
          {"other_failures", choice_of<&O::other_failures>({"stop", "too-large"}), "", 0, 0,
           "a failure that is no lack of memory ends the search, or counts as a size too large"},
          {"steps", &O::steps, "", 1, 100,
           "of each probe in each phase; the optimizer's state is there from the second on"},
          {"all_phases", &O::all_phases, "", 0, 0, "probe every phase, or the first only"},
      }};
  return rows;
}

std::unique_ptr<Searcher> make(const OptionMap& options) {
  return std::make_unique<DoublingSearch>(table().parse(options));
}

// The original of P4.1. Everything that is not named is repaired.
OptionMap faithful(const char* mode) {
  return {{"mode", mode, {}},         {"counting", "halves", {}},          {"cards", "sum", {}},
          {"below", "give-back", {}}, {"other_failures", "too-large", {}}, {"steps", std::int64_t{1}, {}},
          {"all_phases", false, {}}};
}

SearcherEntry entry(std::string name, std::string summary, std::vector<PolicyProfile> profiles) {
  const std::string first = profiles.back().name;
  return {.name = std::move(name),
          .summary = std::move(summary),
          .options = table().describe(),
          .profiles = std::move(profiles),
          .default_profile = first,
          .make = make};
}

}  // namespace

DoublingSearch::DoublingSearch(const DoublingOptions& options)
    : options_(options),
      books_({options.safety_margin, options.cards, options.other_failures == O::OtherFailures::too_large}) {}

SearcherAnswer DoublingSearch::decide(const SearcherQuestion& question, const Observation&) {
  if (question.last == nullptr) return first(question);
  const Probe& probe = *question.last;
  const bool good = books_.enter(probe);
  SearcherAnswer end;
  if (books_.ends(probe, end)) return end;
  if (good) ++good_probes_;
  return good ? after_good(probe.batch, question) : after_bad(probe.batch, question);
}

SearcherAnswer DoublingSearch::first(const SearcherQuestion& question) {
  const std::int64_t batch = std::clamp(options_.init, question.low, question.high);
  if (!may_try() && options_.untried == O::Untried::taken) return books_.found(batch);
  return books_.probe(batch);
}

bool DoublingSearch::may_try() const {
  if (options_.counting != O::Counting::doublings)
    return books_.trials() < std::max(options_.max_trials, std::int64_t{1});
  if (options_.mode == O::Mode::power) return books_.trials() < options_.max_trials;
  return good_probes_ <= options_.max_trials;
}

bool DoublingSearch::may_double() const {
  if (options_.counting == O::Counting::halves) return books_.trials() < options_.max_trials / 2;
  return may_try();
}

SearcherAnswer DoublingSearch::after_good(std::int64_t batch, const SearcherQuestion& question) {
  if (options_.mode == O::Mode::binsearch && books_.bad() > 0) return bisect(question);
  const std::int64_t next = std::min(2 * batch, question.high);
  if (next == batch) return take(batch, question);
  if (books_.bad() > 0) {  // mode power, on its way down
    const bool again = options_.known_failures == O::Known::tried_again && may_try();
    return again ? books_.probe(next) : take(books_.good(), question);
  }
  if (may_double()) return books_.probe(next);
  const bool blindly = options_.untried == O::Untried::taken && options_.mode == O::Mode::power;
  return take(blindly ? next : batch, question);
}

SearcherAnswer DoublingSearch::after_bad(std::int64_t batch, const SearcherQuestion& question) {
  if (books_.good() > 0) {
    return options_.mode == O::Mode::binsearch ? bisect(question) : take(books_.good(), question);
  }
  if (options_.below == O::Below::give_back) return books_.found(batch);
  const std::int64_t next = batch / 2;
  if (next < question.low) return books_.none();
  // The peer takes it that one sample always fits.
  const bool blindly = options_.untried == O::Untried::taken;
  if (blindly && next <= 1 && options_.mode == O::Mode::binsearch) return books_.found(next);
  if (may_try()) return books_.probe(next);
  return blindly ? books_.found(next) : books_.none();
}

SearcherAnswer DoublingSearch::bisect(const SearcherQuestion& question) {
  const std::int64_t good = books_.good();
  const std::int64_t gap = books_.bad() - good;
  const bool close = static_cast<double>(gap) <= options_.tolerance * static_cast<double>(good);
  if (gap <= 1 || close || !may_try()) return take(good, question);
  return books_.probe(good + gap / 2);
}

SearcherAnswer DoublingSearch::take(std::int64_t batch, const SearcherQuestion& question) const {
  const auto reduced = static_cast<std::int64_t>(static_cast<double>(batch) * options_.reduction);
  return books_.found(std::max(question.low, reduced));
}

SearcherEntry binsearch_entry() {
  return entry("binsearch", "doubles until a size does not fit, then bisects, then takes 95 %",
               {{"faithful", "the original with its defects", faithful("binsearch")},
                {"repaired", "fullest card, searches below init, nothing fits = error", {}}});
}

SearcherEntry power_entry() {
  return entry(
      "power", "doubles until a size does not fit and takes 95 % of the last that did",
      {{"faithful", "the original with its defects", faithful("power")},
       {"repaired", "fullest card, searches below init, nothing fits = error", {{"mode", "power", {}}}}});
}

// Lightning's batch size scaling.
SearcherEntry doubling_bisect_entry() {
  const OptionMap peer{{"init", std::int64_t{2}, {}},
                       {"counting", "doublings", {}},
                       {"safety_margin", 1.0, {}},
                       {"reduction", 1.0, {}}};
  return entry("doubling-bisect", "a peer's: doubles from 2 until a size fails, then bisects to the edge",
               {{"peer", "as published: an untried size may be the answer, a size that failed is tried again",
                 overlay(peer, {{"untried", "taken", {}}, {"known_failures", "tried-again", {}}})},
                {"repaired", "tries every size it answers with", peer}});
}

// NeMo's OOMptimizer: one search for each bucket of lengths.
SearcherEntry bucket_bisect_entry() {
  return entry("bucket-bisect", "a peer's: for each bucket, doubles from 32 and bisects to 5 %",
               {{"peer",
                 "as published",
                 {{"init", std::int64_t{32}, {}},
                  {"max_trials", std::int64_t{1000}, {}},
                  {"safety_margin", 1.0, {}},
                  {"reduction", 1.0, {}},
                  {"tolerance", 0.05, {}}}}});
}

}  // namespace vramlab
