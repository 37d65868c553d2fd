#include "policies/searchers/probe_books.hpp"

#include <algorithm>

namespace vramlab {

namespace {

std::string share_text(double share) { return fixed_point(share, 3) + " of the memory"; }

}  // namespace

double probed_usage(const Probe& probe, CardsRule rule, Bytes ProbedCard::*figure) {
  double fullest = 0;
  double peaks = 0;
  double totals = 0;
  for (const ProbedCard& card : probe.cards) {
    const auto peak = static_cast<double>(card.*figure);
    const auto total = static_cast<double>(card.total);
    fullest = std::max(fullest, peak / total);
    peaks += peak;
    totals += total;
  }
  return rule == CardsRule::fullest || totals <= 0 ? fullest : peaks / totals;
}

bool ProbeBooks::enter(const Probe& probe) {
  ++trials_;
  const double usage = probed_usage(probe, rule_.cards, rule_.peak);
  const bool good = probe.outcome == ProbeOutcome::ok && usage <= rule_.safety_margin;
  if (good) {
    good_ = std::max(good_, probe.batch);
  } else {
    bad_ = bad_ == 0 ? probe.batch : std::min(bad_, probe.batch);
  }
  last_ran_ = probe.outcome == ProbeOutcome::ok;
  last_ = std::to_string(probe.batch);
  if (probe.outcome == ProbeOutcome::ok) {
    last_ += " peaks at " + share_text(usage) + (good ? "" : ", too much");
  } else {
    last_ += probe.outcome == ProbeOutcome::failed ? " fails"
             : rule_.share < 1                     ? " runs out of " + share_text(rule_.share)
                                                   : " runs out of memory";
    if (!probe.phase.empty()) last_ += " in " + probe.phase;
  }
  return good;
}

std::optional<SearcherAnswer> ProbeBooks::ends(const Probe& probe) const {
  if (rule_.any_failure) return std::nullopt;
  if (probe.outcome == ProbeOutcome::failed && !probe.error.empty())
    return SearcherAnswer{.batch = probe.batch, .reason = probe.error};
  if (probe.outcome != ProbeOutcome::held) return std::nullopt;
  Bytes held = 0;
  for (const ProbedCard& card : probe.cards) held += card.current - std::min(card.start, card.current);
  return SearcherAnswer{.batch = probe.batch,
                        .reason = "trial memory still held: after the clean-up of batch " +
                                  std::to_string(probe.batch) + " " + format_bytes(held) +
                                  " more are allocated than before it"};
}

SearcherAnswer ProbeBooks::probe(std::int64_t batch) const {
  return {.action = SearcherAnswer::Action::probe, .batch = batch, .reason = last_};
}

SearcherAnswer ProbeBooks::found(std::int64_t batch) const {
  const bool untried = batch > good_;
  std::string reason = good_ == 0 ? "no size was good" : std::to_string(good_) + " is good";
  if (bad_ > 0) reason += ", " + std::to_string(bad_) + " is not";
  if (batch != good_) reason += "; taken is " + std::to_string(batch);
  if (untried) reason += bad_ > 0 && batch >= bad_ ? ", which failed" : ", which no probe has shown to fit";
  return {.action = SearcherAnswer::Action::found,
          .batch = batch,
          .extrapolated = untried,
          .largest_good = good_,
          .by_option = bad_ == 0,
          .reason = std::move(reason)};
}

SearcherAnswer ProbeBooks::none() const {
  std::string reason = "there is no size to try";
  if (trials_ > 0 && last_ran_) {
    reason = "batch " + std::to_string(bad_) + " runs, but a good size may use " +
             share_text(rule_.safety_margin) + ": " + last_;
  } else if (trials_ > 0) {
    reason = "batch " + std::to_string(bad_) + " does not fit: " + last_;
  }
  return {.action = SearcherAnswer::Action::none_fits, .reason = std::move(reason)};
}

SearcherAnswer BookedSearcher::decide(const SearcherQuestion& question, const Observation&) {
  if (question.last == nullptr) return first(question);
  const Probe& probe = *question.last;
  const bool good = books_.enter(probe);
  if (auto end = books_.ends(probe)) return *std::move(end);
  return next(probe, good, question);
}

}  // namespace vramlab
