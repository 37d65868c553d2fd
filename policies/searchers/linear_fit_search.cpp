// `linear-fit`: a straight line through the memory of 1, 2, 4, 8 and 16 samples, followed to a share of what
// is free.
#include <algorithm>
#include <cmath>
#include <vector>

#include "policies/contract/policy_set.hpp"
#include "policies/searchers/probe_books.hpp"

namespace vramlab {
namespace {

struct LinearFitOptions {
  enum class NothingFits : std::uint8_t { error, fallback };
  std::int64_t probes = 5;
  double fraction = 0.6;
  NothingFits nothing_fits = NothingFits::error;
  std::int64_t fallback = 16;
  bool verify = true;
  std::int64_t largest = 1024;
  CardsRule cards = CardsRule::fullest;
};

const OptionTable<LinearFitOptions>& linear_fit_table() {
  using O = LinearFitOptions;
  static const OptionTable<O> rows{
      .owner = "linear-fit",
      .options = {
          {"probes", &O::probes, "", 2, 20, "this many sizes are tried: 1, 2, 4 …"},
          {"fraction", &O::fraction, "share of free memory", 0.01, 1, "where the line is read"},
          {"nothing_fits", one_of<&O::nothing_fits>({"error", "fallback"}), "", 0, 0,
           "what to answer if no size fits, or the line says nonsense"},
          {"fallback", &O::fallback, "samples", 1, 1e6, "that answer"},
          {"verify", &O::verify, "", 0, 0,
           "tries the answer where it lies beyond twice the largest size tried, and bisects if it is bad"},
          {"largest", &O::largest, "samples", 1, 1e6, "a larger answer of the line counts as nonsense"},
          {"cards", one_of<&O::cards>({"fullest", "sum"}), "", 0, 0,
           "several cards: the one that is full first, or all of them as if they were one"},
      }};
  return rows;
}

/// What is reserved at some sizes, on a card or on all.
struct Line {
  std::vector<double> sizes;
  std::vector<double> bytes;
  double free = 0;  ///< bytes, before the last probe

  // Least squares. Where it does not rise, memory does not limit the size.
  [[nodiscard]] double size_at(double limit) const {
    const auto n = static_cast<double>(sizes.size());
    double x = 0, y = 0, xx = 0, xy = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      x += sizes[i];
      y += bytes[i];
      xx += sizes[i] * sizes[i];
      xy += sizes[i] * bytes[i];
    }
    const double slope = (n * xy - x * y) / (n * xx - x * x);
    return slope > 0 ? (limit - (y - slope * x) / n) / slope : HUGE_VAL;
  }
};

class LinearFit final : public BookedSearcher {
 public:
  explicit LinearFit(const LinearFitOptions& options)
      : BookedSearcher({1.0, options.cards}), options_(options) {}

 private:
  SearcherAnswer first(const SearcherQuestion& question) override { return books().probe(question.low); }

  SearcherAnswer next(const Probe& probe, bool good, const SearcherQuestion& question) override {
    if (verifying_) return narrow();
    if (good) note(probe);
    const std::int64_t doubled = 2 * probe.batch;
    if (good && books().trials() < options_.probes && doubled <= question.high) return books().probe(doubled);
    return read(question);
  }

  void note(const Probe& probe) {
    const bool each = options_.cards == CardsRule::fullest;
    lines_.resize(each ? probe.cards.size() : 1);
    for (Line& line : lines_) {
      line.sizes.push_back(static_cast<double>(probe.batch));
      line.bytes.push_back(0);
      line.free = 0;
    }
    for (std::size_t i = 0; i < probe.cards.size(); ++i) {
      Line& line = lines_[each ? i : 0];
      line.bytes.back() += static_cast<double>(probe.cards[i].peak_reserved);
      line.free += static_cast<double>(probe.cards[i].free);
    }
  }

  SearcherAnswer read(const SearcherQuestion& question) {
    if (lines_.empty() || lines_.front().sizes.size() < 2) {
      if (options_.nothing_fits == LinearFitOptions::NothingFits::fallback) return fall_back(question);
      return books().good() > 0 ? books().found(books().good()) : books().none();
    }
    double size = HUGE_VAL;
    for (const Line& line : lines_) size = std::min(size, line.size_at(options_.fraction * line.free));
    // The published rule: never a size that failed, and nonsense falls back to the default.
    if (books().bad() > 0 && size >= static_cast<double>(books().bad())) {
      size = static_cast<double>(books().good());
    }
    if (size < 1 || size > static_cast<double>(options_.largest)) {
      if (options_.nothing_fits == LinearFitOptions::NothingFits::fallback) return fall_back(question);
      size = std::clamp(size, static_cast<double>(books().good()), static_cast<double>(options_.largest));
    }
    const auto batch = std::clamp(static_cast<std::int64_t>(size), question.low, question.high);
    verifying_ = options_.verify && batch > 2 * books().good();
    return verifying_ ? books().probe(batch) : by_memory(batch);
  }

  SearcherAnswer fall_back(const SearcherQuestion& question) const {
    return books().found(std::clamp(options_.fallback, question.low, question.high));
  }

  // What the line, and no list of sizes, has ended.
  SearcherAnswer by_memory(std::int64_t batch) const {
    SearcherAnswer answer = books().found(batch);
    answer.by_option = false;
    return answer;
  }

  SearcherAnswer narrow() const {
    const std::int64_t gap = books().bad() > 0 ? books().bad() - books().good() : 0;
    return gap <= 1 ? by_memory(books().good()) : books().probe(books().good() + gap / 2);
  }

  LinearFitOptions options_;
  std::vector<Line> lines_;  // one a card, or one for all
  bool verifying_ = false;
};

}  // namespace

// Ultralytics' autobatch; what it fits is reserved memory.
SearcherEntry linear_fit_entry() {
  return {.name = "linear-fit",
          .summary = "a peer's: a line through 1, 2, 4, 8, 16, followed to 60 % of free memory",
          .options = linear_fit_table().describe(),
          .profiles = {{"peer",
                        "as published: nothing is verified, and if nothing fits it answers 16",
                        {{"nothing_fits", "fallback"}, {"verify", false}}},
                       {"repaired", "tries what it extrapolates; nothing fits = error"}},
          .default_profile = "repaired",
          .make = maker<LinearFit>(linear_fit_table())};
}

}  // namespace vramlab
