#include "fit/loops.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "fit/repetition.hpp"

namespace vramlab {
namespace {

using Kind = RecordedOp::Kind;

constexpr std::size_t kLeastRounds = 3;  // in the shape that a loop is found in
constexpr std::int64_t kMostPlus = 3;
constexpr std::size_t kLongestBody = 4000;  // actions
constexpr std::size_t kHowFarOff = 400;     // actions between where a loop is expected and where it is

/// A loop as found in one shape, and what counts its rounds.
struct FoundLoop {
  Repetition at;
  std::uint32_t counter = 0;  // place in the list of counters
  std::int64_t plus = 0;
};

class LoopFinder {
 public:
  LoopFinder(const std::vector<ShapeProgram>& shapes, const std::vector<LoopCounter>& counters)
      : counters_(counters) {
    for (const ShapeProgram& shape : shapes) sequences_.emplace_back(shape);
  }

  /// Loops in every shape, in the order of their places; the same loops in each.
  std::vector<std::vector<FoundLoop>> find() {
    std::vector<FoundLoop> best;
    for (std::uint32_t counter = 0; counter < counters_.size(); ++counter) {
      std::vector<FoundLoop> loops = loops_of(counter);
      if (covered(loops) > covered(best)) best = std::move(loops);
    }
    std::vector<std::vector<FoundLoop>> by_shape(sequences_.size());
    for (std::size_t shape = 0; shape < sequences_.size(); ++shape) {
      by_shape[shape] = *place_all(best, shape, template_of(best));
    }
    return by_shape;
  }

 private:
  static std::size_t covered(const std::vector<FoundLoop>& loops) {
    std::size_t total = 0;
    for (const FoundLoop& loop : loops) total += loop.at.period * loop.at.rounds;
    return total;
  }

  [[nodiscard]] std::size_t template_of(const std::vector<FoundLoop>& loops) const {
    return loops.empty() ? 0 : template_of(loops[0].counter);
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
    const std::int64_t count = counters_[counter].by_shape[shape];
    if (count < static_cast<std::int64_t>(kLeastRounds) || count > static_cast<std::int64_t>(sequence.size()))
      return {};
    std::vector<FoundLoop> candidates;
    const std::size_t longest = std::min(kLongestBody, sequence.size() / (kLeastRounds - 1));
    for (std::size_t period = 1; period <= longest; ++period) {
      for (const Repetition& run : sequence.runs(period, kLeastRounds)) {
        const std::int64_t plus = static_cast<std::int64_t>(run.rounds) - count;
        if (plus <= 0 && plus >= -kMostPlus) candidates.push_back({run, counter, plus});
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const FoundLoop& a, const FoundLoop& b) {
      return a.at.period * a.at.rounds > b.at.period * b.at.rounds;
    });
    std::vector<FoundLoop> loops;
    for (const FoundLoop& one : candidates) {
      const bool free = std::none_of(loops.begin(), loops.end(), [&](const FoundLoop& other) {
        return one.at.start < other.at.end() && other.at.start < one.at.end();
      });
      if (!free || !is_everywhere(one, loops, shape)) continue;
      loops.push_back(one);
      std::sort(loops.begin(), loops.end(),
                [](const auto& a, const auto& b) { return a.at.start < b.at.start; });
    }
    return loops;
  }

  [[nodiscard]] bool is_everywhere(const FoundLoop& one, std::vector<FoundLoop> with,
                                   std::size_t shape) const {
    with.push_back(one);
    std::sort(with.begin(), with.end(), [](const auto& a, const auto& b) { return a.at.start < b.at.start; });
    for (std::size_t other = 0; other < sequences_.size(); ++other) {
      const auto placed = place_all(with, other, shape);
      if (!placed || !explains_length(with, shape, *placed, other)) return false;
    }
    return true;
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
};

/// Whether the free at a place of a loop's body goes through another loop backwards.
using FreeDirections = std::map<std::pair<std::int32_t, std::size_t>, bool>;

/// Writes a program with its loops taken out.
class LoopRemover {
 public:
  /// `directions` are added to where a body is gone round often enough to see them, and used elsewhere.
  LoopRemover(const ShapeProgram& flat, const std::vector<FoundLoop>& loops, FreeDirections& directions)
      : flat_(flat), loops_(loops), directions_(directions) {}

  ShapeProgram run() {
    result_.parameters = flat_.parameters;
    for (const FoundLoop& loop : loops_) result_.rounds.push_back(static_cast<std::int64_t>(loop.at.rounds));
    place_actions();
    number_allocations();
    std::size_t next_loop = 0;
    for (std::size_t at = 0; at < places_.size();) {
      if (next_loop < loops_.size() && at == loops_[next_loop].at.start) {
        write_loop(static_cast<std::uint32_t>(next_loop));
        at = loops_[next_loop++].at.end();
        continue;
      }
      write_plain(at++);
    }
    for (; next_loop < loops_.size(); ++next_loop) write_loop(static_cast<std::uint32_t>(next_loop));
    return std::move(result_);
  }

 private:
  struct Place {
    std::size_t op = 0;  // in the flat program
    std::int32_t loop = -1;
    std::int64_t round = 0;
    std::size_t position = 0;  // in the body
  };
  struct Owner {
    std::uint32_t number = 0;  // in the result
    std::int32_t loop = -1;
    std::int64_t round = 0;
  };

  // `ensure` operations have no place of their own: they stand in front of the action that follows.
  void place_actions() {
    ensures_.emplace_back();
    for (std::size_t op = 0; op < flat_.ops.size(); ++op) {
      if (flat_.ops[op].kind == Kind::ensure) {
        ensures_.back().push_back(flat_.ops[op].what);
        continue;
      }
      Place place{op};
      const std::size_t at = places_.size();
      for (std::size_t l = 0; l < loops_.size(); ++l) {
        const Repetition& run = loops_[l].at;
        if (at < run.start || at >= run.end()) continue;
        place.loop = static_cast<std::int32_t>(l);
        place.round = static_cast<std::int64_t>((at - run.start) / run.period);
        place.position = (at - run.start) % run.period;
      }
      places_.push_back(place);
      ensures_.emplace_back();
    }
  }

  void number_allocations() {
    owners_.resize(flat_.allocations.size());
    std::map<std::pair<std::int32_t, std::size_t>, std::uint32_t> bodies;
    for (const Place& place : places_) {
      const RecordedOp& op = flat_.ops[place.op];
      if (op.kind != Kind::allocate) continue;
      const ShapeAllocation& one = flat_.allocations[op.what];
      auto number = static_cast<std::uint32_t>(result_.allocations.size());
      if (place.loop >= 0) {
        const auto [entry, fresh] = bodies.try_emplace({place.loop, place.position}, number);
        number = entry->second;
        if (!fresh) {
          result_.allocations[number].sizes.push_back(one.sizes[0]);
          result_.allocations[number].brief = result_.allocations[number].brief && one.brief;
        }
      }
      if (number == result_.allocations.size()) {
        result_.allocations.push_back(one);
        result_.allocations.back().loop = place.loop;
      }
      owners_[op.what] = {number, place.loop, place.round};
    }
  }

  void write_ensures(std::size_t at) {
    for (const std::uint32_t extra : ensures_[at]) result_.ops.push_back({Kind::ensure, extra});
    ensures_[at].clear();
  }

  void write_plain(std::size_t at) {
    write_ensures(at);
    RecordedOp op = flat_.ops[places_[at].op];
    if (op.kind == Kind::allocate) op.what = owners_[op.what].number;
    if (op.kind == Kind::free) {
      const Owner& owner = owners_[op.what];
      op.what = owner.number;
      if (owner.loop >= 0) op.place = plain_place(owner);
    }
    result_.ops.push_back(std::move(op));
  }

  // The first rounds are counted from the start, the last ones from the end.
  [[nodiscard]] RecordedOp::Place plain_place(const Owner& owner) const {
    const std::int64_t last = result_.rounds[static_cast<std::size_t>(owner.loop)] - 1;
    const bool from_end = owner.round > last / 2 || owner.round == last;
    return {from_end, static_cast<std::int32_t>(from_end ? owner.round - last : owner.round), 0};
  }

  void write_loop(std::uint32_t number) {
    const Repetition& run = loops_[number].at;
    for (std::size_t at = run.start; at < run.end() && at < places_.size(); ++at) write_ensures(at);
    result_.ops.push_back({Kind::loop, number});
    if (run.rounds > 0) {
      for (std::size_t position = 0; position < run.period; ++position) {
        RecordedOp op = flat_.ops[places_[run.start + position].op];
        if (op.kind == Kind::allocate) {
          op.what = owners_[op.what].number;
        } else {
          op = body_free(number, position);
        }
        result_.ops.push_back(std::move(op));
      }
    }
    result_.ops.push_back({Kind::end, number});
  }

  // What the same free means in every round: mostly a tensor of some loop that moves on with the rounds, at
  // the border of loops a few others.
  [[nodiscard]] RecordedOp body_free(std::uint32_t loop, std::size_t position) {
    const Repetition& run = loops_[loop].at;
    std::vector<Owner> targets;
    for (std::size_t round = 0; round < run.rounds; ++round) {
      const std::size_t at = run.start + round * run.period + position;
      targets.push_back(owners_[flat_.ops[places_[at].op].what]);
    }
    std::map<std::uint32_t, std::size_t> votes;
    for (const Owner& owner : targets) votes[owner.number] += owner.loop >= 0 ? 1 : 0;
    std::uint32_t number = targets.back().number;
    for (const auto& [candidate, count] : votes) {
      if (count > votes[number]) number = candidate;
    }
    RecordedOp op{Kind::free, number};
    std::vector<std::pair<std::int64_t, std::int64_t>> rounds;  // here, of the target
    for (std::size_t round = 0; round < targets.size(); ++round) {
      if (targets[round].number == number && targets[round].loop >= 0) {
        rounds.emplace_back(static_cast<std::int64_t>(round), targets[round].round);
      } else {
        op.place.outside.push_back(targets[round].number);
      }
    }
    if (rounds.empty()) return op;  // each round frees another plain tensor
    const auto known = directions_.try_emplace({static_cast<std::int32_t>(loop), position}, false).first;
    if (rounds.size() > 1) known->second = rounds[1].second < rounds[0].second;
    const bool backwards = known->second;
    op.place.step = backwards ? -1 : 1;
    op.place.from_end = backwards;
    std::int64_t offset = rounds[0].second - op.place.step * rounds[0].first;
    if (backwards) offset -= loop_rounds(targets, number) - 1;
    op.place.offset = static_cast<std::int32_t>(offset);
    return op;
  }

  [[nodiscard]] std::int64_t loop_rounds(const std::vector<Owner>& targets, std::uint32_t number) const {
    for (const Owner& owner : targets) {
      if (owner.number == number && owner.loop >= 0)
        return result_.rounds[static_cast<std::size_t>(owner.loop)];
    }
    return 0;
  }

  const ShapeProgram& flat_;
  const std::vector<FoundLoop>& loops_;
  FreeDirections& directions_;
  ShapeProgram result_;
  std::vector<Place> places_;
  std::vector<std::vector<std::uint32_t>> ensures_;  // by action: extras made before it
  std::vector<Owner> owners_;
};

}  // namespace

LoopedPrograms take_out_loops(std::vector<ShapeProgram> shapes, ShapeProgram first_step,
                              std::size_t first_shape, std::vector<LoopCounter> counters) {
  LoopedPrograms result;
  // The first step is one more program to find the loops in; it has no frees of older gradients.
  shapes.push_back(std::move(first_step));
  for (LoopCounter& counter : counters) counter.by_shape.push_back(counter.by_shape[first_shape]);
  const auto loops = LoopFinder(shapes, counters).find();
  if (!loops[0].empty()) {
    for (const FoundLoop& loop : loops[0])
      result.loops.push_back({counters[loop.counter].variable, loop.plus});
    std::size_t most = 0;  // the shape with most rounds says which way each free moves
    for (std::size_t shape = 1; shape < shapes.size(); ++shape) {
      if (loops[shape][0].at.rounds > loops[most][0].at.rounds) most = shape;
    }
    FreeDirections directions;
    ShapeProgram in_most = LoopRemover(shapes[most], loops[most], directions).run();
    for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
      shapes[shape] =
          shape == most ? std::move(in_most) : LoopRemover(shapes[shape], loops[shape], directions).run();
    }
  }
  result.first_step = std::move(shapes.back());
  shapes.pop_back();
  result.shapes = std::move(shapes);
  return result;
}

}  // namespace vramlab
