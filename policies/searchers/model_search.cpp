// `model`: a straight line through the peaks nearest to the edge says where to probe next. Memory is nearly
// straight in the batch, so a few probes do; whatever is answered was probed.
#include <algorithm>
#include <cmath>
#include <vector>

#include "policies/contract/policy_set.hpp"
#include "policies/searchers/probe_books.hpp"

namespace vramlab {
namespace {

struct ModelOptions {
  std::int64_t init = 1;
  std::int64_t max_trials = 25;
  double safety_margin = 0.9;
  double tolerance = 0.02;
  CardsRule cards = CardsRule::fullest;
  enum class Memory : std::uint8_t { reserved, allocated };
  Memory memory = Memory::reserved;
  [[nodiscard]] Bytes ProbedCard::*peak() const {
    return memory == Memory::reserved ? &ProbedCard::peak_reserved : &ProbedCard::peak;
  }
};

const OptionTable<ModelOptions>& model_table() {
  using O = ModelOptions;
  static const OptionTable<O> rows{
      .owner = "model",
      .options = {
          {"init", &O::init, "samples", 1, 1e6, "the first size"},
          {"max_trials", &O::max_trials, "", 2, 1000, "probes at most; then the largest good size is taken"},
          {"safety_margin", &O::safety_margin, "share of the memory", 0.01, 1, "largest peak of a good size"},
          {"tolerance", &O::tolerance, "ratio", 0, 1,
           "a good size is taken if the line sees less than this share of it above"},
          {"cards", one_of<&O::cards>({"fullest", "sum"}), "", 0, 0,
           "several cards: the one that is full first, or all of them as if they were one"},
          {"memory", one_of<&O::memory>({"reserved", "allocated"}), "", 0, 0,
           "whose peak counts: what the allocator holds, fragments included, or what tensors hold"},
      }};
  return rows;
}

/// The peaks of one size, as far over the limit as they are; one number a card, or one for all.
struct PeakPoint {
  std::int64_t batch = 0;
  std::vector<double> excess;  ///< peak less what a good size may use, bytes
};

class ModelSearch final : public BookedSearcher {
 public:
  explicit ModelSearch(const ModelOptions& options)
      : BookedSearcher({options.safety_margin, options.cards, false, options.peak()}), options_(options) {}

 private:
  SearcherAnswer first(const SearcherQuestion& question) override {
    return books().probe(std::clamp(options_.init, question.low, question.high));
  }

  SearcherAnswer next(const Probe& probe, bool, const SearcherQuestion& question) override {
    // Memory before the step is what no sample would need, or less: the first line is steep, hence careful.
    if (points_.empty()) add(0, probe, &ProbedCard::start);
    if (probe.outcome == ProbeOutcome::ok) add(probe.batch, probe, options_.peak());
    return aim(question);
  }

  void add(std::int64_t batch, const Probe& probe, Bytes ProbedCard::*figure) {
    PeakPoint point{batch, {}};
    double sum = 0;
    for (const ProbedCard& card : probe.cards) {
      const double excess =
          static_cast<double>(card.*figure) - options_.safety_margin * static_cast<double>(card.total);
      point.excess.push_back(excess);
      sum += excess;
    }
    if (options_.cards == CardsRule::sum) point.excess = {sum};
    const auto after = std::find_if(points_.begin(), points_.end(),
                                    [&](const PeakPoint& other) { return other.batch > batch; });
    points_.insert(after, std::move(point));
  }

  SearcherAnswer aim(const SearcherQuestion& question) const {
    const std::int64_t good = books().good();
    const std::int64_t bad = books().bad();
    if (good == 0 && bad <= question.low) return books().none();
    if (books().trials() >= options_.max_trials) return good > 0 ? books().found(good) : books().none();
    const std::int64_t top = bad > 0 ? bad - 1 : question.high;
    const double edge =
        std::clamp(predicted(), static_cast<double>(good), static_cast<double>(question.high));
    if (good >= top) return books().found(good);
    if (good > 0 && std::floor(edge) <= static_cast<double>(good) * (1 + options_.tolerance)) {
      return books().found(good);
    }
    auto target = static_cast<std::int64_t>(edge);
    if (target > top) target = good + (bad > 0 ? (bad - good) / 2 : top - good);
    return books().probe(std::clamp(target, std::max(good + 1, question.low), top));
  }

  // The size at which the first card meets its limit, by the two known points nearest to it.
  [[nodiscard]] double predicted() const {
    std::size_t upper = 1;
    while (upper + 1 < points_.size() && points_[upper].batch <= books().good()) ++upper;
    if (points_.size() < 2) return 0;
    const PeakPoint& a = points_[upper - 1];
    const PeakPoint& b = points_[upper];
    double size = HUGE_VAL;
    for (std::size_t card = 0; card < a.excess.size(); ++card) {
      const double slope = (b.excess[card] - a.excess[card]) / static_cast<double>(b.batch - a.batch);
      if (slope > 0) size = std::min(size, static_cast<double>(b.batch) - b.excess[card] / slope);
    }
    return size;
  }

  ModelOptions options_;
  std::vector<PeakPoint> points_;  // in the order of their sizes
};

}  // namespace

SearcherEntry model_entry() {
  return {.name = "model",
          .summary = "jumps to where a line through the nearest peaks meets the limit, and verifies there",
          .options = model_table().describe(),
          .profiles = {{"default", "the options above"}},
          .default_profile = "default",
          .make = maker<ModelSearch>(model_table())};
}

}  // namespace vramlab
