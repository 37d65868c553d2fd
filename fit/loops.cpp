#include "fit/loops.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace vramlab {
namespace {

using Kind = RecordedOp::Kind;

/// What is known of the frees in loops' bodies from shapes with more rounds.
struct FreeDirections {
  /// By loop and place in its body: whether the free goes through another loop backwards.
  std::map<std::pair<std::uint32_t, std::size_t>, bool> backwards;
  /// In loops over parts, by loop, length of its body and place in it: a free of what the round before
  /// allocated, as the place of that allocation.
  std::map<std::tuple<std::uint32_t, std::size_t, std::size_t>, std::size_t> of_round_before;
};

/// Writes a program with its loops taken out.
class LoopRemover {
 public:
  /// `directions` are added to where a body is gone round often enough to see them, and used elsewhere.
  LoopRemover(const ShapeProgram& flat, const std::vector<FoundLoop>& loops, bool of_parts,
              FreeDirections& directions)
      : flat_(flat), loops_(loops), of_parts_(of_parts), directions_(directions) {}

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
    std::int64_t round = 0;    // of its loop, if it has one
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
      const auto next = static_cast<std::uint32_t>(result_.allocations.size());
      const std::uint32_t number =
          place.loop < 0 ? next : bodies.try_emplace({place.loop, place.position}, next).first->second;
      if (number == next) {
        result_.allocations.push_back(one);
        result_.allocations.back().loop = place.loop;
      } else {
        ShapeAllocation& known = result_.allocations[number];
        known.sizes.push_back(one.sizes[0]);
        known.brief = known.brief && one.brief;
      }
      owners_[op.what] = {number, place.round};
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
      if (in_loop(owner.number)) op.place = plain_place(owner);
    }
    result_.ops.push_back(std::move(op));
  }

  [[nodiscard]] bool in_loop(std::uint32_t number) const { return result_.allocations[number].loop >= 0; }

  // Of the loop of such an allocation.
  [[nodiscard]] std::int64_t rounds_of(std::uint32_t number) const {
    return result_.rounds[static_cast<std::size_t>(result_.allocations[number].loop)];
  }

  // The first rounds are counted from the start, the last ones from the end.
  [[nodiscard]] RecordedOp::Place plain_place(const Owner& owner) const {
    const std::int64_t last = rounds_of(owner.number) - 1;
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
        const bool allocates = op.kind == Kind::allocate;
        result_.ops.push_back(allocates ? RecordedOp{Kind::allocate, owners_[op.what].number}
                                        : body_free(number, position));
      }
    }
    result_.ops.push_back({Kind::end, number});
  }

  // What the same free means in every round: mostly a tensor of some loop that moves on with the rounds, at
  // the border of loops a few others.
  [[nodiscard]] RecordedOp body_free(std::uint32_t loop, std::size_t position) {
    const Repetition& run = loops_[loop].at;
    std::vector<Owner> targets;
    for (std::size_t at = run.start + position; at < run.end(); at += run.period) {
      targets.push_back(owners_[flat_.ops[places_[at].op].what]);
    }
    std::map<std::uint32_t, std::size_t> votes;
    for (const Owner& owner : targets) votes[owner.number] += in_loop(owner.number) ? 1 : 0;
    std::uint32_t number = targets.back().number;
    for (const auto& [candidate, count] : votes) {
      if (count > votes[number]) number = candidate;
    }
    RecordedOp op{Kind::free, number};
    std::vector<std::pair<std::int64_t, std::int64_t>> rounds;  // here, of the target
    for (std::size_t round = 0; round < targets.size(); ++round) {
      if (targets[round].number == number && in_loop(number)) {
        rounds.emplace_back(static_cast<std::int64_t>(round), targets[round].round);
      } else {
        op.place.outside.push_back(targets[round].number);
      }
    }
    if (rounds.empty()) {
      adopt(loop, position, op);
      return op;  // each round frees another plain tensor
    }
    if (of_parts_ && rounds[0] == std::pair<std::int64_t, std::int64_t>{1, 0}) {
      directions_.of_round_before[{loop, run.period, position}] = birth_in(run, number);
    }
    bool& backwards = directions_.backwards[{loop, position}];
    if (rounds.size() > 1) backwards = rounds[1].second < rounds[0].second;
    op.place.step = backwards ? -1 : 1;
    op.place.from_end = backwards;
    std::int64_t offset = rounds[0].second - op.place.step * rounds[0].first;
    if (backwards) offset -= rounds_of(number) - 1;
    op.place.offset = static_cast<std::int32_t>(offset);
    return op;
  }

  // Where in the body of `run` the allocation `number` is made.
  [[nodiscard]] std::size_t birth_in(const Repetition& run, std::uint32_t number) const {
    std::size_t position = 0;
    while (position < run.period && !makes(run.start + position, number)) ++position;
    return position;
  }

  [[nodiscard]] bool makes(std::size_t place, std::uint32_t number) const {
    const RecordedOp& op = flat_.ops[places_[place].op];
    return op.kind == Kind::allocate && owners_[op.what].number == number;
  }

  // With one round no free of what the round before made is seen: its place tells which it is.
  void adopt(std::uint32_t loop, std::size_t position, RecordedOp& op) const {
    const Repetition& run = loops_[loop].at;
    const auto known = directions_.of_round_before.find({loop, run.period, position});
    if (known == directions_.of_round_before.end() || known->second >= run.period) return;
    const RecordedOp& birth = flat_.ops[places_[run.start + known->second].op];
    if (birth.kind != Kind::allocate) return;
    op.what = owners_[birth.what].number;
    op.place.step = 1;
    op.place.offset = -1;
  }

  const ShapeProgram& flat_;
  const std::vector<FoundLoop>& loops_;
  bool of_parts_;
  FreeDirections& directions_;
  ShapeProgram result_;
  std::vector<Place> places_;
  std::vector<std::vector<std::uint32_t>> ensures_;  // by action: extras made before it
  std::vector<Owner> owners_;
};

}  // namespace

LoopedPrograms take_out_loops(std::vector<ShapeProgram> shapes, std::vector<MakingStep> making,
                              std::vector<LoopCounter> counters) {
  LoopedPrograms result;
  // Steps that make something are more programs to find the loops in; they have no frees of older gradients.
  for (MakingStep& step : making) {
    shapes.push_back(std::move(step.program));
    for (LoopCounter& counter : counters) counter.by_shape.push_back(counter.by_shape[step.shape]);
  }
  const auto loops = find_loops(shapes, counters);
  if (!loops[0].empty()) {
    for (const FoundLoop& loop : loops[0]) {
      result.loops.push_back({.count = counters[loop.counter].variable, .plus = loop.plus});
      if (counters[loop.counter].parts.empty()) continue;
      result.parts = counters[loop.counter].parts;
      // the first parts may differ from the others (gradients are made, and not added to)
      const auto before = static_cast<std::int64_t>((loop.at.start + loop.at.period / 2) / loop.at.period);
      result.loops.back().skipped = std::min(before, -loop.plus);
    }
    // the shapes with most rounds say which way each free moves
    std::vector<std::size_t> order(shapes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return loops[a][0].at.rounds > loops[b][0].at.rounds;
    });
    FreeDirections directions;
    for (const std::size_t shape : order) {
      shapes[shape] = LoopRemover(shapes[shape], loops[shape], !result.parts.empty(), directions).run();
    }
  }
  for (std::size_t step = making.size(); step-- > 0; shapes.pop_back()) {
    making[step].program = std::move(shapes.back());
  }
  result.making = std::move(making);
  result.shapes = std::move(shapes);
  return result;
}

}  // namespace vramlab
