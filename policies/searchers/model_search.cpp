// `model`: a straight line through the peaks nearest to the edge says where to probe next. Memory is nearly
// straight in the batch, so a few probes do; whatever is answered was probed, with shapes that vary as the
// job's do, in the share of the memory that the answer may use.
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
  double tolerance = 0.03;
  std::int64_t varied_steps = 64;
  std::int64_t varied_starts = 8;
  CardsRule cards = CardsRule::fullest;
  enum class Memory : std::uint8_t { reserved, allocated };
  Memory memory = Memory::reserved;
  [[nodiscard]] Bytes ProbedCard::*peak() const {
    return memory == Memory::reserved ? &ProbedCard::peak_reserved : &ProbedCard::peak;
  }
  /// What a probe may reserve, where that is what counts on each card.
  [[nodiscard]] double share() const {
    return memory == Memory::reserved && cards == CardsRule::fullest ? safety_margin : 1;
  }
};

const OptionTable<ModelOptions>& model_table() {
  using O = ModelOptions;
  static const OptionTable<O> rows{
      .owner = "model",
      .options = {
          {"init", &O::init, "samples", 1, 1e6, "the first size"},
          {"max_trials", &O::max_trials, "", 2, 1000, "probes at most; then the largest good size is taken"},
          {"safety_margin", &O::safety_margin, "share of the memory", 0.01, 1,
           "largest peak of a good size; of reserved memory probes are given no more"},
          {"tolerance", &O::tolerance, "ratio", 0, 1,
           "a good size is taken if no more than this share of it can lie above"},
          {"varied_steps", &O::varied_steps, "", 0, 10000,
           "of each probe, before those at the size's own shape: shapes drawn as the job draws them"},
          {"varied_starts", &O::varied_starts, "", 1, 1000,
           "how often these steps begin anew: the first ones decide where lasting tensors lie"},
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

/// Where a line through two points meets the limit.
struct PeakLine {
  double edge = HUGE_VAL;  ///< in samples; infinite where no card's peak grows
  double slope = 0;        ///< bytes a sample, of the card that is full first
};

// The size at which the first card meets its limit.
PeakLine line_through(const PeakPoint& a, const PeakPoint& b) {
  PeakLine line;
  for (std::size_t card = 0; card < a.excess.size(); ++card) {
    const double slope = (b.excess[card] - a.excess[card]) / static_cast<double>(b.batch - a.batch);
    if (slope <= 0) continue;
    const double edge = static_cast<double>(b.batch) - b.excess[card] / slope;
    if (edge < line.edge) line = {edge, slope};
  }
  return line;
}

class ModelSearch final : public BookedSearcher {
 public:
  explicit ModelSearch(const ModelOptions& options)
      : BookedSearcher({options.safety_margin, options.cards, false, options.peak(), options.share()}),
        options_(options) {}

  [[nodiscard]] ProbeDepth depth() const override {
    return {.varied_steps = options_.varied_steps,
            .varied_starts = options_.varied_starts,
            .share = options_.share()};
  }

 private:
  SearcherAnswer first(const SearcherQuestion& question) override {
    return books().probe(std::clamp(options_.init, question.low, question.high));
  }

  SearcherAnswer next(const Probe& probe, bool good, const SearcherQuestion& question) override {
    failures_ = good ? 0 : failures_ + 1;
    // Memory before the step is what no sample would need, or less: a line from there is steep, hence
    // careful.
    if (points_.empty()) points_ = {point(0, probe, &ProbedCard::start)};
    if (probe.outcome == ProbeOutcome::ok) add(point(probe.batch, probe, &ProbedCard::peak));
    return aim(question);
  }

  [[nodiscard]] PeakPoint point(std::int64_t batch, const Probe& probe, Bytes ProbedCard::*figure) const {
    PeakPoint point{batch, {}};
    double sum = 0;
    for (const ProbedCard& card : probe.cards) {
      const double excess =
          static_cast<double>(card.*figure) - options_.safety_margin * static_cast<double>(card.total);
      point.excess.push_back(excess);
      sum += excess;
    }
    if (options_.cards == CardsRule::sum) point.excess = {sum};
    return point;
  }

  void add(PeakPoint point) {
    const auto after =
        std::ranges::find_if(points_, [&](const PeakPoint& other) { return other.batch > point.batch; });
    points_.insert(after, std::move(point));
  }

  SearcherAnswer aim(const SearcherQuestion& question) const {
    const std::int64_t good = books().good();
    const std::int64_t bad = books().bad();
    if (good == 0 && bad <= question.low) return books().none();
    const std::int64_t top = bad > 0 ? bad - 1 : question.high;
    if (good >= top || books().trials() >= options_.max_trials) return take(question);
    const double met = std::floor(predicted());
    // One probe alone knows no line: what a step needs for any batch looks like the need of its samples.
    const bool known = points_.size() > 2 || bad > 0;
    const double most = std::min(met, static_cast<double>(top));
    if (good > 0 && known && most <= static_cast<double>(good) * (1 + options_.tolerance)) {
      if (bad > 0 || met < static_cast<double>(top)) return take(question);
    }
    return books().probe(std::clamp(target(met, top), std::max(good + 1, question.low), top));
  }

  // Nearly where the line meets the limit: what fits there needs no further probe. After a failure a
  // little less, each time twice as much less; else at most the middle between a good size and a bad one.
  [[nodiscard]] std::int64_t target(double met, std::int64_t top) const {
    const std::int64_t good = books().good();
    const std::int64_t bad = books().bad();
    const double nearly = std::ceil(met / (1 + options_.tolerance));
    const auto aimed = static_cast<std::int64_t>(std::clamp(nearly, 1.0, static_cast<double>(top)));
    // Where the peak hardly grew, the line says little of what lies far above.
    if (bad == 0)
      return points_.size() > 2 && last_growth() < kLittle ? std::min(aimed, kFarthest * good) : aimed;
    const std::int64_t middle = good + (bad - good + 1) / 2;
    const bool far = bad > 2 * good;  // the line goes far beyond what was tried
    if (failures_ == 0 || far || met == kNowhere) return std::min(aimed, middle);
    const double less = kLess * std::exp2(static_cast<double>(failures_ - 1));
    return std::max(middle, static_cast<std::int64_t>(static_cast<double>(bad - 1) * (1 - less)));
  }

  // The size at which the first card meets its limit, by the two known points nearest to it.
  [[nodiscard]] double predicted() const {
    if (points_.size() < 2) return kNowhere;
    std::size_t upper = points_.size() > 2 ? 2 : 1;
    while (upper + 1 < points_.size() && points_[upper].batch <= books().good()) ++upper;
    const PeakLine line = line_through(points_[upper - 1], points_[upper]);
    if (upper < 3) return line.edge;
    // Where the peak has only begun to grow (it was that of the optimizer, or of a workspace), the growth of
    // the samples alone is steeper than it looks.
    const PeakLine before = line_through(points_[upper - 2], points_[upper - 1]);
    const PeakLine whole = line_through(points_[0], points_[upper]);
    const bool bends = line.slope > kBend * before.slope && line.slope < whole.slope;
    return bends ? whole.edge : line.edge;
  }

  // How much of the room the peak took from the second largest size to the largest.
  [[nodiscard]] double last_growth() const {
    const PeakPoint& last = points_.back();
    const PeakPoint& before = points_[points_.size() - 2];
    double most = 0;
    for (std::size_t card = 0; card < last.excess.size(); ++card) {
      most = std::max(most, (last.excess[card] - before.excess[card]) / -points_.front().excess[card]);
    }
    return most;
  }

  [[nodiscard]] SearcherAnswer take(const SearcherQuestion& question) const {
    const std::int64_t good = books().good();
    if (good == 0) return books().none();
    SearcherAnswer answer = books().found(good);
    answer.by_option = books().trials() >= options_.max_trials;
    if (good == question.high && points_.size() > 2 && last_growth() < kFlat) {
      answer.reason += "; this is flat: " + std::to_string(points_[points_.size() - 2].batch) +
                       " peaks as high, so memory does not bound the batch";
    }
    return answer;
  }

  static constexpr double kNowhere = HUGE_VAL;
  static constexpr std::int64_t kFarthest = 8;
  static constexpr double kLess = 0.06;    // after a first failure
  static constexpr double kBend = 1.5;     // a slope that grew by so much has changed
  static constexpr double kLittle = 0.05;  // of the room
  static constexpr double kFlat = 0.01;    // less is what allocators round

  ModelOptions options_;
  std::vector<PeakPoint> points_;  // in the order of their sizes; the first is without any step
  std::int64_t failures_ = 0;      // in a row
};

}  // namespace

SearcherEntry model_entry() {
  return {.name = "model",
          .summary =
              "jumps to where a line through the nearest peaks meets the limit, and verifies there with "
              "shapes that vary",
          .options = model_table().describe(),
          .profiles = {{"default", "the options above"}},
          .default_profile = "default",
          .make = maker<ModelSearch>(model_table())};
}

}  // namespace vramlab
