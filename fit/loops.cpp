#include "fit/loops.hpp"

#include <algorithm>
#include <map>

namespace vramlab {
namespace {

using Kind = RecordedOp::Kind;

/// Whether the free at a place of a loop's body goes through another loop backwards.
using FreeDirections = std::map<std::pair<std::uint32_t, std::size_t>, bool>;

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
    if (rounds.empty()) return op;  // each round frees another plain tensor
    bool& backwards = directions_[{loop, position}];
    if (rounds.size() > 1) backwards = rounds[1].second < rounds[0].second;
    op.place.step = backwards ? -1 : 1;
    op.place.from_end = backwards;
    std::int64_t offset = rounds[0].second - op.place.step * rounds[0].first;
    if (backwards) offset -= rounds_of(number) - 1;
    op.place.offset = static_cast<std::int32_t>(offset);
    return op;
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
  const auto loops = find_loops(shapes, counters);
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
