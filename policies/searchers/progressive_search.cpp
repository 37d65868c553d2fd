// `progressive`: 1, 2, 4, 8, 16, 32 in turn. The original stops at the first size that works.
#include <algorithm>

#include "policies/contract/policy_set.hpp"
#include "policies/searchers/probe_books.hpp"

namespace vramlab {
namespace {

struct ProgressiveOptions {
  std::int64_t largest = 32;
  bool stop_at_first = false;
  double safety_margin = 1;
  CardsRule cards = CardsRule::fullest;
};

const OptionTable<ProgressiveOptions>& progressive_table() {
  using O = ProgressiveOptions;
  static const OptionTable<O> rows{
      .owner = "progressive",
      .options = {
          {"largest", &O::largest, "samples", 1, 1e6, "the last size of the list"},
          {"stop_at_first", &O::stop_at_first, "", 0, 0, "take the first size that works, which is 1"},
          {"safety_margin", &O::safety_margin, "share of the memory", 0.01, 1, "largest peak of a good size"},
          {"cards", one_of<&O::cards>({"fullest", "sum"}), "", 0, 0,
           "several cards: the fullest decides, or peaks and totals are summed"},
      }};
  return rows;
}

class Progressive final : public BookedSearcher {
 public:
  explicit Progressive(const ProgressiveOptions& options)
      : BookedSearcher({options.safety_margin, options.cards}), options_(options) {}

 private:
  SearcherAnswer first(const SearcherQuestion& question) override {
    return books().probe(std::max(std::int64_t{1}, question.low));
  }

  SearcherAnswer next(const Probe& probe, bool good, const SearcherQuestion& question) override {
    const std::int64_t doubled = 2 * probe.batch;
    const bool over = doubled > std::min(options_.largest, question.high);
    if (good && (options_.stop_at_first || over)) return books().found(books().good());
    if (!good && books().good() > 0) return books().found(books().good());
    // The original goes on past a failure; a larger size cannot fit where a smaller one did not.
    if (!good && (!options_.stop_at_first || over)) return books().none();
    return books().probe(doubled);
  }

  ProgressiveOptions options_;
};

}  // namespace

SearcherEntry progressive_entry() {
  return {.name = "progressive",
          .summary = "1, 2, 4 … 32: the last size that works, or, as in the original, the first",
          .options = progressive_table().describe(),
          .profiles = {{"faithful", "stops at the first size that works", {{"stop_at_first", true}}},
                       {"repaired", "the last size that works"}},
          .default_profile = "repaired",
          .make = maker<Progressive>(progressive_table())};
}

}  // namespace vramlab
