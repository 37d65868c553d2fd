// `progressive`: 1, 2, 4, 8, 16, 32 in turn (P3.8). The original stops at the first size that works.
#include <algorithm>

#include "policies/builtins.hpp"
#include "policies/searchers/probe_books.hpp"

namespace vramlab {
namespace {

struct ProgressiveOptions {
  std::int64_t largest = 32;
  bool stop_at_first = false;
  double safety_margin = 1;
  CardsRule cards = CardsRule::fullest;
};

const OptionTable<ProgressiveOptions>& table() {
  using O = ProgressiveOptions;
  static const OptionTable<O> rows{
      .owner = "progressive",
      .options = {
          {"largest", &O::largest, "samples", 1, 1e6, "the last size of the list"},
          {"stop_at_first", &O::stop_at_first, "", 0, 0, "take the first size that works, which is 1"},
          {"safety_margin", &O::safety_margin, "share of the memory", 0.01, 1, "largest peak of a good size"},
          {"cards", choice_of<&O::cards>({"fullest", "sum"}), "", 0, 0,
           "several cards: the fullest decides, or peaks and totals are summed"},
      }};
  return rows;
}

class Progressive final : public Searcher {
 public:
  explicit Progressive(const ProgressiveOptions& options)
      : options_(options), books_({options.safety_margin, options.cards, false}) {}

  SearcherAnswer decide(const SearcherQuestion& question, const Observation&) override {
    if (question.last == nullptr) return books_.probe(std::max(std::int64_t{1}, question.low));
    const Probe& probe = *question.last;
    const bool good = books_.enter(probe);
    SearcherAnswer end;
    if (books_.ends(probe, end)) return end;
    const std::int64_t next = 2 * probe.batch;
    const bool over = next > std::min(options_.largest, question.high);
    if (good && (options_.stop_at_first || over)) return books_.found(books_.good());
    if (!good && books_.good() > 0) return books_.found(books_.good());
    // The original goes on past a failure; a larger size cannot fit where a smaller one did not.
    if (!good && (!options_.stop_at_first || over)) return books_.none();
    return books_.probe(next);
  }

 private:
  ProgressiveOptions options_;
  ProbeBooks books_;
};

std::unique_ptr<Searcher> make(const OptionMap& options) {
  return std::make_unique<Progressive>(table().parse(options));
}

}  // namespace

SearcherEntry progressive_entry() {
  return {.name = "progressive",
          .summary = "1, 2, 4 … 32: the last size that works, or, as in the original, the first",
          .options = table().describe(),
          .profiles = {{"faithful", "stops at the first size that works", {{"stop_at_first", true, {}}}},
                       {"repaired", "the last size that works", {}}},
          .default_profile = "repaired",
          .make = make};
}

}  // namespace vramlab
