// `back-off`: starts at the size that is wanted and multiplies by a factor until one fits.
#include <algorithm>

#include "policies/builtins.hpp"
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

const OptionTable<BackOffOptions>& table() {
  using O = BackOffOptions;
  static const OptionTable<O> rows{
      .owner = "back-off",
      .options = {
          {"init", &O::init, "samples", 0, 1e6, "the size that is wanted"},
          {"factor", &O::factor, "", 0.01, 0.99, "multiplies a size that failed; fractions are cut off"},
          {"safety_margin", &O::safety_margin, "share of the memory", 0.01, 1, "largest peak of a good size"},
          {"then_bisect", &O::then_bisect, "", 0, 0,
           "after the first size that fits, bisects up to the last that did not"},
          {"cards", choice_of<&O::cards>({"fullest", "sum"}), "", 0, 0,
           "several cards: the fullest decides, or peaks and totals are summed"},
      }};
  return rows;
}

class BackOff final : public Searcher {
 public:
  explicit BackOff(const BackOffOptions& options)
      : options_(options), books_({options.safety_margin, options.cards, false}) {}

  SearcherAnswer decide(const SearcherQuestion& question, const Observation&) override {
    if (question.last == nullptr) return try_or_give_up(std::min(options_.init, question.high), question);
    const Probe& probe = *question.last;
    const bool good = books_.enter(probe);
    SearcherAnswer end;
    if (books_.ends(probe, end)) return end;
    if (good || books_.good() > 0) return climb();
    // Cut off in double precision, as Python's int(size * 0.9) does.
    return try_or_give_up(static_cast<std::int64_t>(static_cast<double>(probe.batch) * options_.factor),
                          question);
  }

 private:
  SearcherAnswer try_or_give_up(std::int64_t batch, const SearcherQuestion& question) const {
    return batch < question.low ? books_.none() : books_.probe(batch);
  }

  SearcherAnswer climb() const {
    const std::int64_t gap = books_.bad() - books_.good();
    if (!options_.then_bisect || gap <= 1) return books_.found(books_.good());
    return books_.probe(books_.good() + gap / 2);
  }

  BackOffOptions options_;
  ProbeBooks books_;
};

std::unique_ptr<Searcher> make(const OptionMap& options) {
  return std::make_unique<BackOff>(table().parse(options));
}

}  // namespace

// Accelerate's find_executable_batch_size: it halved first, and takes nine tenths since.
SearcherEntry back_off_entry() {
  return {.name = "back-off",
          .summary = "a peer's: from the size that is wanted down by a factor until one fits",
          .options = table().describe(),
          .profiles = {{"nine-tenths", "as published since", {}},
                       {"halving", "as published first", {{"factor", 0.5, {}}}},
                       {"halving-bisect",
                        "halves, then bisects up to the edge",
                        {{"factor", 0.5, {}}, {"then_bisect", true, {}}}}},
          .default_profile = "nine-tenths",
          .make = make};
}

}  // namespace vramlab
