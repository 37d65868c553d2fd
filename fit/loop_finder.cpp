#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "fit/alignment.hpp"
#include "fit/loops.hpp"

namespace vramlab {

namespace {

using Kind = RecordedOp::Kind;

/// The actions of one step without `ensure`, as repetitions see them.
class ActionSequence {
 public:
  explicit ActionSequence(const ShapeProgram& program) {
    std::int64_t allocations = 0;
    std::map<std::uint32_t, std::size_t> born;
    for (const RecordedOp& op : program.ops) {
      if (op.kind == Kind::ensure) continue;
      const bool allocates = op.kind == Kind::allocate;
      const bool plain = allocates ? program.allocations[op.what].kept < 0 : op.kind == Kind::free;
      if (allocates) born.emplace(op.what, actions_.size());
      if (op.kind == Kind::free) actions_[born.at(op.what)].life = allocations - std::int64_t{op.what};
      actions_.push_back({allocates, plain, op.what, allocations});
      allocations += allocates ? 1 : 0;
    }
  }

  [[nodiscard]] std::size_t size() const { return actions_.size(); }

  /// The longest repetitions of `period` actions with at least `least` rounds, each as early as possible.
  [[nodiscard]] std::vector<Repetition> runs(std::size_t period, std::size_t least) const {
    std::vector<Repetition> found;
    std::size_t start = 0;
    const auto close = [&](std::size_t end) {
      const std::size_t rounds = (end - start + period) / period;
      if (end > start && rounds >= least) found.push_back({start, period, rounds});
    };
    for (std::size_t at = 0; at + period < actions_.size(); ++at) {
      if (!matches(at, period)) {
        close(at);
        start = at + 1;
      } else if (!moves_on(at, start, period)) {
        close(at);
        start = at - period + 1;
      }
    }
    if (actions_.size() > period) close(actions_.size() - period);
    return found;
  }

  /// How often the actions at `start` repeat with `period`, at least 1; they may begin to repeat earlier.
  [[nodiscard]] std::size_t rounds_at(std::size_t start, std::size_t period) const {
    std::size_t at = start;
    while (matches(at, period) && moves_on(at, start, period)) ++at;
    return (at - start + period) / period;
  }

  /// Whether the `period` actions at `start` are the same as those of `other` at `other_start`: kinds, and
  /// frees of what the same round allocated.
  [[nodiscard]] bool same_body(std::size_t start, const ActionSequence& other, std::size_t other_start,
                               std::size_t period) const {
    if (start + period > actions_.size() || other_start + period > other.actions_.size()) return false;
    const std::int64_t here = actions_[start].before;
    const std::int64_t there = other.actions_[other_start].before;
    for (std::size_t i = 0; i < period; ++i) {
      const Action& a = actions_[start + i];
      const Action& b = other.actions_[other_start + i];
      if (!a.repeats || !b.repeats || a.allocates != b.allocates) return false;
      const bool own = a.target >= here;
      if (own != (b.target >= there) || (own && a.target - here != b.target - there)) return false;
    }
    return true;
  }

  /// How much the action `at` looks like the action `other_at` of another step; 0 = not at all.
  [[nodiscard]] std::int64_t likeness(std::size_t at, const ActionSequence& other,
                                      std::size_t other_at) const {
    const Action& a = actions_[at];
    const Action& b = other.actions_[other_at];
    if (a.allocates != b.allocates || a.repeats != b.repeats) return 0;
    if (!a.repeats) return 50;  // gradients come in one order
    if (a.allocates) return a.life == b.life ? 6 : 2;
    return a.before - a.target == b.before - b.target ? 3 : 1;
  }

 private:
  struct Action {
    bool allocates = false;
    bool repeats = true;      ///< false for what cannot be in a loop: kept tensors and their frees
    std::int64_t target = 0;  ///< number of the allocation
    std::int64_t before = 0;  ///< allocations before this action
    std::int64_t life = 0;    ///< of an allocation: allocations until its free
  };

  [[nodiscard]] bool matches(std::size_t at, std::size_t period) const {
    if (at + period >= actions_.size()) return false;
    const Action& one = actions_[at];
    const Action& next = actions_[at + period];
    return one.repeats && next.repeats && one.allocates == next.allocates;
  }

  /// Whether a free at `at`, in a repetition since `start`, goes as many allocations further as in the round
  /// before.
  [[nodiscard]] bool moves_on(std::size_t at, std::size_t start, std::size_t period) const {
    return actions_[at].allocates || at < start + period || shift(at - period, period) == shift(at, period);
  }
  [[nodiscard]] std::int64_t shift(std::size_t at, std::size_t period) const {
    return actions_[at + period].target - actions_[at].target;
  }

  std::vector<Action> actions_;
};

constexpr std::size_t kLeastRounds = 3;  // in the shape that a loop is found in
constexpr std::size_t kLeastParts = 2;   // the same where rounds are parts
constexpr std::int64_t kMostPlus = 3;
constexpr std::size_t kLongestBody = 4000;      // actions
constexpr std::size_t kMostWork = 200'000'000;  // actions compared for loops over parts, in one shape
constexpr std::size_t kHowFarOff = 400;         // actions between where a loop is expected and where it is

class LoopFinder {
 public:
  LoopFinder(const std::vector<ShapeProgram>& shapes, const std::vector<LoopCounter>& counters)
      : counters_(counters) {
    for (const ShapeProgram& shape : shapes) sequences_.emplace_back(shape);
  }

  /// Loops in every shape, in the order of their places; the same loops in each.
  std::vector<std::vector<FoundLoop>> find() {
    std::vector<FoundLoop> best;
    for (const bool of_parts : {false, true}) {
      // a loop over parts is most of the step, which leaves no room for it where another one is
      if (of_parts && is_most(best)) break;
      for (std::uint32_t counter = 0; counter < counters_.size(); ++counter) {
        if (is_of_parts(counter) != of_parts) continue;
        std::vector<FoundLoop> loops = loops_of(counter);
        if (covered(loops) > covered(best)) best = std::move(loops);
      }
    }
    std::vector<std::vector<FoundLoop>> by_shape;
    for (std::size_t shape = 0; shape < sequences_.size(); ++shape) {
      by_shape.push_back(*place_all(best, shape, best.empty() ? 0 : template_of(best[0].counter)));
    }
    return by_shape;
  }

 private:
  static std::size_t covered(const std::vector<FoundLoop>& loops) {
    std::size_t total = 0;
    for (const FoundLoop& loop : loops) total += loop.at.period * loop.at.rounds;
    return total;
  }

  [[nodiscard]] bool is_most(const std::vector<FoundLoop>& loops) const {
    return !loops.empty() && 2 * covered(loops) > sequences_[template_of(loops[0].counter)].size();
  }

  [[nodiscard]] std::size_t template_of(std::uint32_t counter) const {
    const auto& values = counters_[counter].by_shape;
    return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
  }

  // All runs whose number of rounds is the counter plus a constant, longest first, none over another; then
  // only those that every shape has.
  std::vector<FoundLoop> loops_of(std::uint32_t counter) {
    const std::size_t shape = template_of(counter);
    const auto& values = counters_[counter].by_shape;
    if (std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end()) return {};
    const ActionSequence& sequence = sequences_[shape];
    const std::int64_t count = values[shape];
    if (count < static_cast<std::int64_t>(is_of_parts(counter) ? kLeastParts : kLeastRounds) ||
        count > static_cast<std::int64_t>(sequence.size()))
      return {};
    std::vector<FoundLoop> candidates;
    for (const Repetition& run : is_of_parts(counter) ? long_runs(shape) : all_runs(shape)) {
      const std::int64_t plus = static_cast<std::int64_t>(run.rounds) - count;
      if (plus <= 0 && plus >= -kMostPlus) candidates.push_back({run, counter, plus});
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const FoundLoop& a, const FoundLoop& b) {
      return a.at.period * a.at.rounds > b.at.period * b.at.rounds;
    });
    std::vector<FoundLoop> loops;
    for (const FoundLoop& one : candidates) {
      const bool free = std::none_of(loops.begin(), loops.end(), [&](const FoundLoop& other) {
        return one.at.start < other.at.end() && other.at.start < one.at.end();
      });
      if (!free) continue;
      std::vector<FoundLoop> with = loops;
      with.insert(std::upper_bound(with.begin(), with.end(), one, starts_earlier), one);
      if (is_everywhere(with, shape)) loops = std::move(with);
    }
    return loops;
  }

  [[nodiscard]] bool is_of_parts(std::uint32_t counter) const { return !counters_[counter].parts.empty(); }

  // All repetitions of a shape; they are the same for every counter.
  const std::vector<Repetition>& all_runs(std::size_t shape) {
    const auto [entry, fresh] = all_runs_.try_emplace(shape);
    const ActionSequence& sequence = sequences_[shape];
    const std::size_t longest = std::min(kLongestBody, sequence.size() / (kLeastRounds - 1));
    for (std::size_t period = 1; fresh && period <= longest; ++period) {
      const auto runs = sequence.runs(period, kLeastRounds);
      entry->second.insert(entry->second.end(), runs.begin(), runs.end());
    }
    return entry->second;
  }

  // Those that make up most of a step.
  const std::vector<Repetition>& long_runs(std::size_t shape) {
    const auto [entry, fresh] = long_runs_.try_emplace(shape);
    const ActionSequence& sequence = sequences_[shape];
    const std::size_t longest = std::min(sequence.size() / kLeastParts, kMostWork / (sequence.size() + 1));
    for (std::size_t period = 16; fresh && period <= longest; ++period) {
      for (const Repetition& run : sequence.runs(period, kLeastParts)) {
        if (2 * period * run.rounds > sequence.size()) entry->second.push_back(run);
      }
    }
    return entry->second;
  }

  static bool starts_earlier(const FoundLoop& a, const FoundLoop& b) { return a.at.start < b.at.start; }

  [[nodiscard]] bool is_everywhere(const std::vector<FoundLoop>& loops, std::size_t shape) const {
    for (std::size_t other = 0; other < sequences_.size(); ++other) {
      if (is_of_parts(loops[0].counter) && !has_length(loops, shape, other)) return false;
    }
    for (std::size_t other = 0; other < sequences_.size(); ++other) {
      const auto placed = place_all(loops, other, shape);
      if (!placed || !explains_length(loops, shape, *placed, other)) return false;
    }
    return true;
  }

  // Whether a step is about as long as its number of parts says.
  [[nodiscard]] bool has_length(const std::vector<FoundLoop>& loops, std::size_t shape,
                                std::size_t other) const {
    auto expected = static_cast<double>(sequences_[shape].size());
    double part = 0;
    for (const FoundLoop& loop : loops) {
      const auto& count = counters_[loop.counter].by_shape;
      expected -= static_cast<double>(count[shape] - count[other]) * static_cast<double>(loop.at.period);
      part += static_cast<double>(loop.at.period);
    }
    return std::abs(static_cast<double>(sequences_[other].size()) - expected) < 0.5 * part;
  }

  // Fewer rounds make a step shorter, by what the loops say or more (fewer rows need fewer operations).
  // Layers that happen to repeat as often as the counter says do not.
  [[nodiscard]] bool explains_length(const std::vector<FoundLoop>& loops, std::size_t shape,
                                     const std::vector<FoundLoop>& placed, std::size_t other) const {
    const std::size_t said = covered(loops);
    const std::size_t said_there = covered(placed);
    if (said <= said_there) return true;
    const auto shorter =
        static_cast<double>(sequences_[shape].size()) - static_cast<double>(sequences_[other].size());
    return shorter >= 0.9 * static_cast<double>(said - said_there);
  }

  // Where the loops of shape `from` are in `shape`; each is expected as far behind the one before as there.
  [[nodiscard]] std::optional<std::vector<FoundLoop>> place_all(const std::vector<FoundLoop>& loops,
                                                                std::size_t shape, std::size_t from) const {
    if (shape == from) return loops;
    auto placed = place_by_body(loops, shape, from);
    if (loops.empty() || !is_of_parts(loops[0].counter)) return placed;
    const bool has_bodies = placed && std::all_of(placed->begin(), placed->end(),
                                                  [](const FoundLoop& loop) { return loop.at.rounds > 0; });
    if (has_bodies) return placed;  // without a body its place is only where it was expected
    auto aligned = place_by_alignment(loops, shape, from);
    return aligned ? aligned : placed;
  }

  [[nodiscard]] std::optional<std::vector<FoundLoop>> place_by_body(const std::vector<FoundLoop>& loops,
                                                                    std::size_t shape,
                                                                    std::size_t from) const {
    std::vector<FoundLoop> placed;
    std::size_t end_here = 0;
    std::size_t end_there = 0;
    for (const FoundLoop& loop : loops) {
      const std::int64_t rounds = counters_[loop.counter].by_shape[shape] + loop.plus;
      if (rounds < 0) return std::nullopt;
      const std::size_t expected = end_here + (loop.at.start - end_there);
      const auto at = place(loop, static_cast<std::size_t>(rounds), expected, end_here, shape, from);
      if (!at) return std::nullopt;
      placed.push_back({*at, loop.counter, loop.plus});
      end_here = at->end();
      end_there = loop.at.end();
    }
    return placed;
  }

  // The step of `from` with as many rounds as `shape` has is aligned with the step of `shape`.
  [[nodiscard]] std::optional<std::vector<FoundLoop>> place_by_alignment(const std::vector<FoundLoop>& loops,
                                                                         std::size_t shape,
                                                                         std::size_t from) const {
    const ActionSequence& known = sequences_[from];
    const ActionSequence& sequence = sequences_[shape];
    std::vector<std::size_t> actions;  // of `from`
    std::vector<std::size_t> borders;  // among those: begin and end of each loop
    std::size_t at = 0;
    const auto take = [&](std::size_t end) {
      while (at < end) actions.push_back(at++);
      borders.push_back(actions.size());
    };
    for (const FoundLoop& loop : loops) {
      const std::int64_t rounds = counters_[loop.counter].by_shape[shape] + loop.plus;
      if (rounds < 0 || rounds > static_cast<std::int64_t>(loop.at.rounds)) return std::nullopt;
      take(loop.at.start);
      take(loop.at.start + static_cast<std::size_t>(rounds) * loop.at.period);
      at = loop.at.end();
    }
    take(known.size());
    const Alignment pairs = align_sequences(
        actions.size(), sequence.size(),
        [&](std::size_t i, std::size_t j) { return known.likeness(actions[i], sequence, j); });
    if (10 * pairs.size() < 9 * std::min(actions.size(), sequence.size())) return std::nullopt;
    // a border lies as far in front of the next pair as it does in `from`
    const auto there = [&](std::size_t border) {
      const auto next = std::lower_bound(pairs.begin(), pairs.end(), std::pair{border, std::size_t{0}});
      if (next == pairs.end()) return sequence.size();
      const std::size_t earliest = next == pairs.begin() ? 0 : std::prev(next)->second + 1;
      return next->second - std::min(next->first - border, next->second - earliest);
    };
    std::vector<FoundLoop> placed;
    for (std::size_t l = 0; l < loops.size(); ++l) {
      const FoundLoop& loop = loops[l];
      const auto rounds = static_cast<std::size_t>(counters_[loop.counter].by_shape[shape] + loop.plus);
      const std::size_t begin = there(borders[2 * l]);
      const std::size_t length = there(borders[2 * l + 1]) - begin;
      const std::size_t period = rounds == 0 ? loop.at.period : length / rounds;
      if (rounds > 0 && (length % rounds != 0 || sequence.rounds_at(begin, period) < rounds)) {
        return std::nullopt;
      }
      placed.push_back({{begin, period, rounds}, loop.counter, loop.plus});
    }
    return placed;
  }

  [[nodiscard]] std::optional<Repetition> place(const FoundLoop& loop, std::size_t rounds,
                                                std::size_t expected, std::size_t earliest, std::size_t shape,
                                                std::size_t from) const {
    const std::size_t period = loop.at.period;
    if (rounds == 0) return Repetition{expected, period, 0};
    for (std::size_t off = 0; off <= kHowFarOff; ++off) {
      for (const bool later : {true, false}) {
        if (!later && (off == 0 || off > expected)) continue;
        const std::size_t start = later ? expected + off : expected - off;
        if (start >= earliest && repeats_so_often(loop, rounds, start, shape, from)) {
          return Repetition{start, period, rounds};
        }
      }
    }
    return other_period(loop, rounds, expected, earliest, shape);
  }

  [[nodiscard]] bool repeats_so_often(const FoundLoop& loop, std::size_t rounds, std::size_t start,
                                      std::size_t shape, std::size_t from) const {
    const ActionSequence& sequence = sequences_[shape];
    const std::size_t period = loop.at.period;
    if (!sequence.same_body(start, sequences_[from], loop.at.start, period)) return false;
    if (sequence.rounds_at(start, period) != rounds) return false;
    return start < period || sequence.rounds_at(start - period, period) <= rounds;
  }

  // A body with an action more or less (an allocation that only some shapes need).
  [[nodiscard]] std::optional<Repetition> other_period(const FoundLoop& loop, std::size_t rounds,
                                                       std::size_t expected, std::size_t earliest,
                                                       std::size_t shape) const {
    constexpr std::size_t kMostDifference = 8;
    if (rounds < kLeastRounds || loop.at.period <= 2 * kMostDifference) return std::nullopt;
    std::optional<Repetition> best;
    const auto distance = [&](std::size_t start) {
      return start > expected ? start - expected : expected - start;
    };
    for (std::size_t period = loop.at.period - kMostDifference; period <= loop.at.period + kMostDifference;
         ++period) {
      for (const Repetition& run : sequences_[shape].runs(period, rounds)) {
        if (run.rounds != rounds || run.start < earliest || distance(run.start) > kHowFarOff) continue;
        if (!best || distance(run.start) < distance(best->start)) best = run;
      }
    }
    return best;
  }

  const std::vector<LoopCounter>& counters_;
  std::vector<ActionSequence> sequences_;
  std::map<std::size_t, std::vector<Repetition>> all_runs_;
  std::map<std::size_t, std::vector<Repetition>> long_runs_;
};

}  // namespace

std::vector<std::vector<FoundLoop>> find_loops(const std::vector<ShapeProgram>& shapes,
                                               const std::vector<LoopCounter>& counters) {
  return LoopFinder(shapes, counters).find();
}

}  // namespace vramlab
