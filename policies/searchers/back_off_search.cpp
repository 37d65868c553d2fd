// `back-off`: starts at the size that is wanted and multiplies by a factor until one fits.
#include <algorithm>

#include "policies/contract/policy_set.hpp"
#include "policies/searchers/probe_books.hpp"

namespace vramlab {
namespace {

struct BackOffOptions {
  std::int64_t init = 128;
  double factor = 0.9;
  double safety_margin = 1;
  bool then_bisect = false;
  CardsRule cards = CardsRule::fullest;
};

const OptionTable<BackOffOptions>& back_off_table() {
  using O = BackOffOptions;
  static const OptionTable<O> rows{
      .owner = "back-off",
      .options = {
          {"init", &O::init, "samples", 0, 1e6, "the size that is wanted"},
          {"factor", &O::factor, "", 0.01, 0.99, "multiplies a size that failed; fractions are cut off"},
          {"safety_margin", &O::safety_margin, "share of the memory", 0.01, 1, "largest peak of a good size"},
          {"then_bisect", &O::then_bisect, "", 0, 0,
           "after the first size that fits, bisects up to the last that did not"},
          {"cards", one_of<&O::cards>({"fullest", "sum"}), "", 0, 0,
           "several cards: the fullest decides, or peaks and totals are summed"},
      }};
  return rows;
}

class BackOff final : public BookedSearcher {
 public:
  explicit BackOff(const BackOffOptions& options)
      : BookedSearcher({options.safety_margin, options.cards}), options_(options) {}

 private:
  SearcherAnswer first(const SearcherQuestion& question) override {
    return try_or_give_up(std::min(options_.init, question.high), question);
  }

  SearcherAnswer next(const Probe& probe, bool good, const SearcherQuestion& question) override {
    if (good || books().good() > 0) return climb();
    // Cut off in double precision, as Python's int(size * 0.9) does.
    return try_or_give_up(static_cast<std::int64_t>(static_cast<double>(probe.batch) * options_.factor),
                          question);
  }

  SearcherAnswer try_or_give_up(std::int64_t batch, const SearcherQuestion& question) const {
    return batch < question.low ? books().none() : books().probe(batch);
  }

  SearcherAnswer climb() const {
    const std::int64_t gap = books().bad() - books().good();
    if (!options_.then_bisect || gap <= 1) return books().found(books().good());
    return books().probe(books().good() + gap / 2);
  }

  BackOffOptions options_;
};

}  // namespace

// Accelerate's find_executable_batch_size: it halved first, and takes nine tenths since.
SearcherEntry back_off_entry() {
  return {.name = "back-off",
          .summary = "a peer's: from the size that is wanted down by a factor until one fits",
          .options = back_off_table().describe(),
          .profiles = {{"nine-tenths", "as published since"},
                       {"halving", "as published first", {{"factor", 0.5}}},
                       {"halving-bisect",
                        "halves, then bisects up to the edge",
                        {{"factor", 0.5}, {"then_bisect", true}}}},
          .default_profile = "nine-tenths",
          .make = maker<BackOff>(back_off_table())};
}

}  // namespace vramlab
