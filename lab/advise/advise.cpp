#include "lab/advise/advise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/advise/front.hpp"
#include "lab/advise/selection.hpp"
#include "lab/parallel.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kBudgets = 12;     // between the program as it is and the least
constexpr std::size_t kRefinements = 5;  // between the last point that does not fit and the first that does
// What a copy takes beside its bytes: 64 KiB to pinned memory 9.8 µs, back 6.5 µs, less the bytes at 55 GB/s;
// H200, torch 2.11, driver 580.
constexpr double kSecondsPerCopy = 7e-6;
constexpr std::size_t kMostMoments = 20'000;
constexpr double kSameCost = 1e-3;  // of a step: the solver prefers the first of equal changes by less

/// What a choice may contain: a unit treated in one way, or the optimizer's state.
struct AdviceChange {
  Way way{};
  std::size_t unit = 0;
};

using Choice = std::vector<bool>;  // by change

/// Collects what the changes do to a program, and asks for the cheapest of them.
class Adviser {
 public:
  Adviser(const ClientProgram& program, const AdviceQuestion& question)
      : program_(program), question_(question), parts_(parts_of(program)) {
    advice_.source = parts_.calls.source;
    advice_.passes = parts_.calls.passes.size();
    advice_.places = parts_.calls.places;
    advice_.solver = has_solver();
  }

  Advice run() {
    find_peak_pass();
    find_units();
    find_changes();
    make_problem();
    std::vector<Choice> choices{Choice(changes_.size())};
    if (!changes_.empty()) {
      for (Choice& choice : choices_by_budget()) choices.push_back(std::move(choice));
      for (Choice& choice : regular_choices()) choices.push_back(std::move(choice));
    }
    replay(choices);
    if (question_.usable()) refine();
    finish();
    return std::move(advice_);
  }

 private:
  // The figures of units are those of the pass in which most is allocated.
  void find_peak_pass() {
    std::vector<ReplayedAction> actions;
    replay_program(program_, {.settings = question_.settings}, {.actions = &actions});
    const auto peak = std::ranges::max_element(actions, {}, &ReplayedAction::allocated);
    const auto at = static_cast<std::size_t>(peak - actions.begin());
    const std::vector<Pass>& passes = parts_.calls.passes;
    for (std::uint32_t i = 0; i < passes.size(); ++i) {
      if (passes[i].begin <= at) peak_pass_ = i;
    }
  }

  [[nodiscard]] Bytes allocated_in(const Pass& pass) const {
    Bytes bytes = 0;
    for (std::size_t i = pass.begin; i < pass.end; ++i) {
      const ClientAction& action = program_.actions[i];
      if (action.kind == ClientAction::Kind::alloc) bytes += parts_.lifetimes[action.block].rounded;
    }
    return bytes;
  }

  void find_units() {
    for (ModelUnit& unit : advised_units(parts_)) {
      std::map<std::uint32_t, UnitFigures> by_pass;
      for (const std::uint32_t call : unit.calls)
        add(parts_.memory[call], by_pass[parts_.calls.calls[call].pass]);
      auto shown = by_pass.find(peak_pass_);
      if (shown == by_pass.end())
        shown = std::ranges::max_element(by_pass, {}, [](const auto& one) { return one.second.saved; });
      UnitFigures figures = std::move(shown->second);
      figures.share /=
          static_cast<double>(std::max<Bytes>(1, allocated_in(parts_.calls.passes[shown->first])));
      figures.unit = std::move(unit);
      advice_.units.push_back(std::move(figures));
    }
    for (ProgramBlock block = 0; block < program_.blocks; ++block) {
      if (parts_.uses.blocks[block].category == Category::optimizer_state &&
          parts_.lifetimes[block].outlives(program_))
        advice_.optimizer_state += parts_.lifetimes[block].rounded;
    }
  }

  void add(const CallMemory& memory, UnitFigures& figures) const {
    figures.saved += memory.bytes;
    figures.inputs += memory.input_bytes;
    figures.most = std::max(figures.most, memory.most);
    figures.share += static_cast<double>(memory.written);
    for (const auto* blocks : {&memory.saved, &memory.taken}) {
      for (const ProgramBlock block : *blocks) {
        figures.copied += parts_.lifetimes[block].requested;
        ++figures.copies;
        figures.host += std::bit_ceil(parts_.lifetimes[block].requested);
      }
    }
  }

  void find_changes() {
    for (std::size_t i = 0; i < advice_.units.size(); ++i) {
      if (question_.allows(Way::recompute)) add_change({Way::recompute, i}, advice_.units[i].share, i);
    }
    if (!question_.step_seconds) return;
    for (std::size_t i = 0; i < advice_.units.size(); ++i) {
      if (question_.allows(Way::offload))
        add_change({Way::offload, i}, copied(advice_.units[i].copied, advice_.units[i].copies), i);
    }
    if (question_.allows(Way::optimizer) && advice_.optimizer_state > 0)
      add_change({Way::optimizer, 0}, copied(advice_.optimizer_state, 0), advice_.units.size());
  }
  void add_change(const AdviceChange& change, double cost, std::size_t group) {
    changes_.push_back(change);
    problem_.changes.push_back({cost, static_cast<std::uint32_t>(group)});
  }

  // There and back, as a share of the step.
  [[nodiscard]] double copied(Bytes bytes, std::size_t copies) const {
    const double seconds = static_cast<double>(bytes) / question_.host_bandwidth.value +
                           static_cast<double>(copies) * kSecondsPerCopy;
    return 2 * seconds / question_.step_seconds->value;
  }

  /// What a change adds from an action on; at `runs`, right before it, `most` for that moment.
  struct Edge {
    std::size_t at = 0;
    std::uint32_t change = 0;
    std::int64_t added = 0;
    bool runs = false;
    std::int64_t most = 0;
  };

  void make_problem() {
    std::vector<Edge> edges;
    for (std::uint32_t i = 0; i < changes_.size(); ++i) {
      if (changes_[i].way == Way::optimizer) {
        add_optimizer(i, edges);
        continue;
      }
      for (const std::uint32_t call : advice_.units[changes_[i].unit].unit.calls)
        add_edges(parts_.memory[call], changes_[i].way, i, edges);
    }
    std::ranges::stable_sort(edges, {}, [](const Edge& edge) { return std::pair(edge.at, !edge.runs); });
    follow(edges);
    keep_moments();
  }

  void add_optimizer(std::uint32_t change, std::vector<Edge>& edges) const {
    for (ProgramBlock block = 0; block < program_.blocks; ++block) {
      if (!is_state(block)) continue;
      const Lifetime& lifetime = parts_.lifetimes[block];
      edges.push_back({lifetime.born, change, -signed_bytes(lifetime.rounded)});
    }
  }
  [[nodiscard]] bool is_state(ProgramBlock block) const {
    return parts_.uses.blocks[block].category == Category::optimizer_state &&
           parts_.lifetimes[block].outlives(program_);
  }
  static std::int64_t signed_bytes(Bytes bytes) { return static_cast<std::int64_t>(bytes); }

  void add_edges(const CallMemory& memory, Way way, std::uint32_t change, std::vector<Edge>& edges) const {
    const auto is_in = [](const auto& blocks, ProgramBlock block) {
      return std::ranges::find(blocks, block) != blocks.end();
    };
    std::int64_t outputs = 0;
    for (std::size_t i = 0; i < memory.saved.size(); ++i) {
      const ProgramBlock block = memory.saved[i];
      const std::int64_t bytes = signed_bytes(parts_.lifetimes[block].rounded);
      const std::size_t back = way == Way::offload ? memory.used[i] : memory.again;
      if (is_in(memory.outputs, block)) {
        outputs += bytes;
        if (way == Way::recompute) continue;
      }
      edges.push_back({memory.let_go[i], change, -bytes});
      edges.push_back({back, change, bytes});
    }
    if (way == Way::offload) {
      for (const ProgramBlock block : memory.taken) {
        const std::int64_t bytes = signed_bytes(parts_.lifetimes[block].rounded);
        edges.push_back({memory.end, change, -bytes});
        edges.push_back({memory.done, change, bytes});
      }
      return;
    }
    edges.push_back({memory.again, change, 0, true, signed_bytes(memory.most) - outputs});
    for (const ProgramBlock block : memory.inputs) {
      const Lifetime& lifetime = parts_.lifetimes[block];
      edges.push_back({lifetime.freed, change, signed_bytes(lifetime.rounded)});
      edges.push_back({memory.done + 1, change, -signed_bytes(lifetime.rounded)});
    }
  }

  // Between two edges only the moment counts at which the program holds most.
  void follow(const std::vector<Edge>& edges) {
    std::map<std::uint32_t, std::int64_t> added;
    std::int64_t held = 0;
    std::int64_t most = 0;
    std::size_t action = 0;
    const auto advance = [&](std::size_t to) {
      for (; action < to; ++action) {
        const ClientAction& done = program_.actions[action];
        if (done.kind == ClientAction::Kind::alloc)
          held += signed_bytes(parts_.lifetimes[done.block].rounded);
        else if (done.kind == ClientAction::Kind::free && parts_.lifetimes[done.block].freed == action)
          held -= signed_bytes(parts_.lifetimes[done.block].rounded);
        most = std::max(most, held);
      }
    };
    const auto note = [&](std::int64_t bytes) {
      problem_.moments.push_back({bytes, {added.begin(), added.end()}});
      std::erase_if(problem_.moments.back().added, [](const auto& one) { return one.second == 0; });
    };
    for (const Edge& edge : edges) {
      if (edge.at > action) {
        advance(edge.at);
        note(most);
        most = held;
      }
      if (edge.runs) {
        added[edge.change] += edge.most;
        note(held);
        added[edge.change] -= edge.most;
      } else {
        added[edge.change] += edge.added;
      }
    }
    advance(program_.actions.size());
    note(most);
  }

  // Only moments that can be above the least count.
  void keep_moments() {
    const auto most = [](const SelectionProblem::Moment& moment) {
      std::int64_t bytes = moment.bytes;
      for (const auto& [change, added] : moment.added) bytes += std::max<std::int64_t>(added, 0);
      return bytes;
    };
    if (problem_.moments.size() > kMostMoments) {
      std::ranges::nth_element(problem_.moments, problem_.moments.begin() + kMostMoments,
                               std::ranges::greater{}, most);
      problem_.moments.resize(kMostMoments);
    }
    least_ = least_peak(problem_);
    const std::int64_t least = problem_.peak(least_.chosen);
    std::erase_if(problem_.moments, [&](const auto& moment) { return most(moment) <= least; });
    as_is_ = problem_.peak(Choice(changes_.size()));
    least_peak_ = std::max(least, std::int64_t{0});
  }

  [[nodiscard]] std::vector<Choice> choices_by_budget() {
    std::vector<std::int64_t> budgets;
    const auto range = static_cast<double>(as_is_ - least_peak_);
    for (std::size_t i = 0; i < kBudgets; ++i) {
      const auto part = static_cast<double>(i) / static_cast<double>(kBudgets - 1);
      budgets.push_back(least_peak_ + static_cast<std::int64_t>(std::llround(part * range)) -
                        (part == 1 ? 1 : 0));
    }
    return choices_at(budgets);
  }

  std::vector<Choice> choices_at(const std::vector<std::int64_t>& budgets) {
    std::vector<std::optional<Selection>> found(budgets.size());
    for_each_index(budgets.size(), question_.threads,
                   [&](std::size_t i) { found[i] = cheapest(problem_, budgets[i], advice_.solver); });
    std::vector<Choice> choices;
    for (const auto& selection : found) {
      if (!selection) continue;
      choices.push_back(selection->chosen);
      bounds_.try_emplace(selection->chosen, *selection);
    }
    return choices;
  }

  // What is easily written: every second or third of what a place makes, or all.
  [[nodiscard]] std::vector<Choice> regular_choices() const {
    std::vector<Choice> choices;
    for (const std::uint32_t every : {1U, 2U, 3U}) {
      Choice choice(changes_.size());
      for (std::size_t i = 0; i < changes_.size(); ++i) {
        if (changes_[i].way == Way::recompute)
          choice[i] = advice_.units[changes_[i].unit].unit.number % every == 0;
      }
      choices.push_back(std::move(choice));
    }
    return choices;
  }

  void replay(const std::vector<Choice>& choices) {
    std::vector<const Choice*> anew;
    for (const Choice& choice : choices) {
      if (replayed_.insert(choice).second) anew.push_back(&choice);
    }
    std::vector<AdvicePoint> points(anew.size());
    for_each_index(anew.size(), question_.threads, [&](std::size_t i) { points[i] = point_of(*anew[i]); });
    for (std::size_t i = 0; i < points.size(); ++i) {
      models_.push_back(problem_.peak(*anew[i]));
      points_.push_back(std::move(points[i]));
      choices_.push_back(*anew[i]);
    }
  }

  [[nodiscard]] AdvicePoint point_of(const Choice& choice) const {
    AdvicePoint point;
    std::vector<TreatedCall> treated;
    for (std::size_t i = 0; i < choice.size(); ++i) {
      if (!choice[i]) continue;
      point.time_ratio += problem_.changes[i].cost;
      if (changes_[i].way == Way::optimizer) {
        point.optimizer_in_host = true;
        point.host_bytes += advice_.optimizer_state;
        continue;
      }
      const UnitFigures& unit = advice_.units[changes_[i].unit];
      const bool offload = changes_[i].way == Way::offload;
      (offload ? point.offloaded : point.recomputed).push_back(changes_[i].unit);
      if (offload) point.host_bytes += unit.host;
      for (const std::uint32_t call : unit.unit.calls)
        treated.push_back({&parts_.memory[call], offload ? Treatment::offload : Treatment::recompute});
    }
    std::ranges::sort(treated, {}, [](const TreatedCall& call) { return call.memory->begin; });
    replay_point(treated, point);
    return point;
  }

  void replay_point(const std::vector<TreatedCall>& treated, AdvicePoint& point) const {
    std::vector<bool> absent;
    for (ProgramBlock block = 0; point.optimizer_in_host && block < program_.blocks; ++block)
      absent.push_back(is_state(block));
    const ClientProgram changed = program_as_if(program_, parts_.lifetimes, treated, absent);
    point.outcome = replay_program(changed, {.settings = question_.settings});
    point.peak_allocated = point.outcome.highest_allocated;
    point.peak_reserved = point.outcome.highest_reserved;
    const std::optional<Bytes> usable = question_.usable();
    if (!usable) return;
    point.fits = point.peak_reserved <= *usable;
    if (*point.fits && changed.attempts == 0) return;
    ReplaySetup setup{.settings = question_.settings, .context = question_.context, .limit = question_.limit};
    setup.total = question_.total.value_or(kNeverFull);
    setup.probe_attempts = changed.attempts > 0;
    point.outcome = replay_program(changed, setup);
    point.fits = point.outcome.serves_all();
  }

  // Looks for something cheaper between what fits and what does not.
  void refine() {
    for (std::size_t round = 0; round < kRefinements; ++round) {
      std::optional<std::size_t> fits;
      for (std::size_t i = 0; i < points_.size(); ++i) {
        if (*points_[i].fits && (!fits || points_[i].time_ratio < points_[*fits].time_ratio)) fits = i;
      }
      if (!fits || *fits == 0) return;
      std::int64_t above = as_is_;
      for (std::size_t i = 0; i < points_.size(); ++i) {
        if (!*points_[i].fits && models_[i] > models_[*fits]) above = std::min(above, models_[i]);
      }
      const std::int64_t budget = models_[*fits] + (above - models_[*fits]) / 2;
      const std::size_t before = points_.size();
      replay(choices_at({budget}));
      if (points_.size() == before) return;
    }
  }

  // How much cheaper a choice with as low a modelled peak could be.
  void bound(std::size_t i) {
    if (points_[i].time_ratio <= 1) return;
    const auto known = bounds_.find(choices_[i]);
    const std::optional<Selection> found = known != bounds_.end()
                                               ? std::optional(known->second)
                                               : cheapest(problem_, models_[i], advice_.solver);
    if (!found) return;
    points_[i].least_ratio = 1 + found->bound;
    points_[i].exact = points_[i].time_ratio <= points_[i].least_ratio + kSameCost;
  }

  void finish() {
    for (const std::size_t i : front_of(points_)) {
      bound(i);
      advice_.front.push_back(std::move(points_[i]));
    }
    advice_.best = first_fit(advice_.front);
  }

  const ClientProgram& program_;
  const AdviceQuestion& question_;
  ModelParts parts_;
  Advice advice_;
  std::uint32_t peak_pass_ = 0;
  std::vector<AdviceChange> changes_;
  SelectionProblem problem_;
  Selection least_;
  std::int64_t as_is_ = 0;       ///< the modelled peak of the program as it is
  std::int64_t least_peak_ = 0;  ///< the least that the search for it reached
  std::map<Choice, Selection> bounds_;
  std::set<Choice> replayed_;
  std::vector<AdvicePoint> points_;
  std::vector<Choice> choices_;       ///< by point
  std::vector<std::int64_t> models_;  ///< by point: its modelled peak
};

// What the recording does not say.
std::vector<std::string> advice_notes(const ClientProgram& program, const AdviceQuestion& question,
                                      const Advice& advice) {
  std::vector<std::string> notes;
  if (advice.source == CallSource::structure) {
    notes.push_back(
        "The recording has no stacks: layers are the longest repeated sequence of sizes, their beginning is "
        "inferred, and other parts are not known. Record with stacks=\"python\" to have lines.");
  } else if (advice.source == CallSource::annotations) {
    notes.push_back(
        "The recording has no stacks; the parts are what it has annotations of (torch.profiler's "
        "record_function).");
  }
  if (advice.source != CallSource::structure && advice.units.empty()) {
    notes.push_back("No part of the model is known to keep anything for a backward pass: " +
                    std::string{advice.passes == 0
                                    ? "no backward was found in the recording."
                                    : "what calls save is computed again already, or is output."});
  }
  if (!advice.units.empty()) {
    notes.push_back(
        "Times are assumed: running a part again takes the share of the step that its forward has in all "
        "bytes "
        "the step allocates. Steps that wait for the host lose more.");
  }
  if (program.attempts > 0) {
    notes.push_back(
        "Requests failed in the recording. A step that one of them ended has no backward, so what it saved "
        "is not "
        "known; the advice is from the other steps, and each such request is tried at its place.");
  }
  if (!question.step_seconds) {
    notes.push_back(
        "How long a step takes is not known, so nothing is advised on host memory. Give --times.");
  } else {
    notes.push_back(fmt::format(
        "Copies to host memory and back are assumed to delay the step by all of their time: {:.0f} GB/s in "
        "one direction ({}), a step of {:.0f} ms ({}).",
        question.host_bandwidth.value / 1e9, question.host_bandwidth.from, question.step_seconds->value * 1e3,
        question.step_seconds->from));
  }
  for (const std::string& note : program.notes) notes.push_back(note);
  return notes;
}

}  // namespace

std::optional<Bytes> AdviceQuestion::usable() const {
  if (!total) return limit;
  const Bytes room = *total - context;
  return limit ? std::min(room, *limit) : room;
}

bool AdviceQuestion::allows(Way way) const {
  return ways.empty() || std::ranges::find(ways, way) != ways.end();
}

Advice advise(const ClientProgram& program, const AdviceQuestion& question) {
  if (question.total && *question.total <= question.context) {
    throw InputError("--capacity",
                     fmt::format("{} is not more than the context of {}.", format_bytes(*question.total),
                                 format_bytes(question.context)));
  }
  Advice advice = Adviser(program, question).run();
  advice.notes = advice_notes(program, question, advice);
  return advice;
}

}  // namespace vramlab
