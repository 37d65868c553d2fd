#include "lab/whatif/holders.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/error.hpp"
#include "lab/parallel.hpp"
#include "recordings/snapshot/stack_groups.hpp"

namespace vramlab {
namespace {

using Kind = ClientAction::Kind;

constexpr std::size_t kMostStretches = 1000;  // of a timeline; two moments each
constexpr std::size_t kMostNames = 8;         // of marks in an error
constexpr Bytes kGone = 10;                   // a pin with less than one in so many bytes is gone
// Pins for which other ways of the program are tried, and the actions that may be replayed for that.
constexpr std::size_t kTriedPins = 5;
constexpr std::size_t kTriedActions = 5'000'000;
// A peak that is higher by one in so many bytes is the same: a replay may be off by that (R10.8).
constexpr Bytes kSamePeak = 100;

/// The marks of a program: their actions and what they are called. Of several of one name the first is that
/// name, too.
struct Marks {
  std::vector<std::size_t> actions;
  std::vector<std::string> names;

  explicit Marks(const ClientProgram& program) {
    std::map<std::string, std::size_t> seen;
    for (std::size_t i = 0; i < program.actions.size(); ++i) {
      if (program.actions[i].kind != Kind::mark) continue;
      actions.push_back(i);
      names.push_back(mark_after(program, i));
      ++seen[names.back()];
    }
    std::map<std::string, std::size_t> numbers;
    for (std::string& name : names) {
      if (seen[name] > 1) name += '#' + std::to_string(++numbers[name]);
    }
  }

  [[nodiscard]] std::optional<std::size_t> find(const std::string& asked) const {
    auto found = std::ranges::find(names, asked);
    if (found == names.end()) found = std::ranges::find(names, asked + "#1");
    if (found == names.end()) return std::nullopt;
    return actions[static_cast<std::size_t>(found - names.begin())];
  }

  /// What the mark that an action is is called; empty if it is none.
  [[nodiscard]] std::string at(std::size_t action) const {
    const auto found = std::ranges::lower_bound(actions, action);
    const bool is_mark = found != actions.end() && *found == action;
    return is_mark ? names[static_cast<std::size_t>(found - actions.begin())] : "";
  }

  /// In whose stretch an action lies; empty after the last.
  [[nodiscard]] std::string around(std::size_t action) const {
    const auto next = std::ranges::lower_bound(actions, action);
    return next == actions.end() ? "" : names[static_cast<std::size_t>(next - actions.begin())];
  }

  [[nodiscard]] std::string known() const {
    if (names.empty()) return "The recording has no marks; \"peak\" and \"failure\" are moments.";
    std::string text = "It has ";
    for (std::size_t i = 0; i < std::min(kMostNames, names.size()); ++i)
      text += (i == 0 ? "\"" : ", \"") + names[i] + '"';
    if (names.size() > kMostNames) text += " and " + std::to_string(names.size() - kMostNames) + " more";
    return text + '.';
  }
};

template <class Value>
std::size_t first_highest(const std::vector<ReplayedAction>& replayed, Value value) {
  const auto place = std::ranges::max_element(replayed, {}, value);
  return static_cast<std::size_t>(place - replayed.begin());
}

/// Follows what each category holds through a replay.
class Walk {
 public:
  Walk(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
       const std::vector<BlockUse>& uses)
      : program_(program), lifetimes_(lifetimes), uses_(uses) {}

  void step(std::size_t action) {
    const ClientAction& done = program_.actions[action];
    if (done.kind != Kind::alloc && done.kind != Kind::free) return;
    const Lifetime& lifetime = lifetimes_[done.block];
    if (!lifetime.place) return;
    const auto category = static_cast<std::size_t>(uses_[done.block].category);
    if (done.kind == Kind::alloc) {
      held[category] += lifetime.place->size;
    } else if (action == lifetime.freed) {
      held[category] -= lifetime.place->size;
    }
  }

  std::array<Bytes, kCategoryNames.size()> held{};

 private:
  const ClientProgram& program_;
  const std::vector<Lifetime>& lifetimes_;
  const std::vector<BlockUse>& uses_;
};

// Of each stretch the moments at which most was allocated and most was reserved.
std::vector<std::size_t> chosen_moments(const std::vector<ReplayedAction>& replayed) {
  std::vector<std::size_t> moments;
  const std::size_t stretch = replayed.size() / kMostStretches + 1;
  for (std::size_t from = 0; from < replayed.size(); from += stretch) {
    const auto begin = replayed.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end =
        replayed.begin() + static_cast<std::ptrdiff_t>(std::min(from + stretch, replayed.size()));
    const auto allocated = std::ranges::max_element(begin, end, {}, &ReplayedAction::allocated);
    const auto reserved = std::ranges::max_element(begin, end, {}, &ReplayedAction::reserved);
    const auto [first, second] = std::minmax({allocated - replayed.begin(), reserved - replayed.begin()});
    moments.push_back(static_cast<std::size_t>(first));
    if (second != first) moments.push_back(static_cast<std::size_t>(second));
  }
  return moments;
}

void add_timeline(const ClientProgram& program, const std::vector<ReplayedAction>& replayed,
                  const std::vector<Lifetime>& lifetimes, Holders& holders,
                  std::array<Bytes, kCategoryNames.size()>& most) {
  CategoryTimeline& timeline = holders.timeline;
  timeline.actions = chosen_moments(replayed);
  Walk walk(program, lifetimes, holders.uses);
  auto next = timeline.actions.begin();
  for (std::size_t i = 0; i < replayed.size(); ++i) {
    walk.step(i);
    const Kind kind = program.actions[i].kind;
    if (kind == Kind::alloc) {
      for (std::size_t category = 0; category < most.size(); ++category)
        most[category] = std::max(most[category], walk.held[category]);
    }
    if (kind == Kind::attempt || replayed[i].failed)
      timeline.failures.emplace_back(i, program.actions[i].bytes);
    if (next == timeline.actions.end() || *next != i) continue;
    for (std::size_t category = 0; category < most.size(); ++category)
      timeline.allocated[category].push_back(walk.held[category]);
    timeline.reserved.push_back(replayed[i].reserved);
    ++next;
  }
}

// How most bytes of each category were known.
std::array<Evidence, kCategoryNames.size()> evidence_of(const std::vector<Lifetime>& lifetimes,
                                                        const std::vector<BlockUse>& uses) {
  std::array<std::array<Bytes, kEvidenceNames.size()>, kCategoryNames.size()> bytes{};
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (lifetimes[i].place)
      bytes[static_cast<std::size_t>(uses[i].category)][static_cast<std::size_t>(uses[i].how)] +=
          lifetimes[i].place->size;
  }
  std::array<Evidence, kCategoryNames.size()> how{};
  for (std::size_t i = 0; i < how.size(); ++i)
    how[i] = static_cast<Evidence>(std::ranges::max_element(bytes[i]) - bytes[i].begin());
  return how;
}

}  // namespace

std::optional<std::size_t> moment_of(const ClientProgram& program, const std::string& name) {
  if (name.empty() || name == "peak") return std::nullopt;
  const Marks marks(program);
  if (const auto found = marks.find(name)) return found;
  if (name == "failure" && !program.failures.empty()) return program.failures.front().action;
  if (name == "failure")
    throw InputError("--at failure", "no request failed in " + program.file + ". " + marks.known());
  throw InputError("--at", '"' + name + "\" is no mark of " + program.file + ". " + marks.known());
}

void add_pins(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
              const PlacedBlocks& placed, Holders& holders) {
  const Marks marks(program);
  for (Pin& pin : pins_of(placed)) {
    holders.idle += pin.idle;
    HeldIdle held;
    if (!pin.blocks.empty()) {
      const ProgramBlock oldest = pin.blocks.front();
      const Lifetime& lifetime = lifetimes[oldest];
      held.category = holders.uses[oldest].category;
      if (lifetime.stack < program.stacks.size() && !program.stacks[lifetime.stack].empty())
        held.stack = shown_frames(program.frames, program.stacks[lifetime.stack]);
      held.since_action = lifetime.born;
      const std::string name = marks.around(lifetime.born);
      held.since = lifetime.before_recording ? "before recording"
                   : name.empty()            ? "action " + std::to_string(lifetime.born + 1)
                                             : name;
    }
    held.pin = std::move(pin);
    holders.pins.push_back(std::move(held));
  }
}

std::vector<HeldBlock> held_after(const std::vector<Lifetime>& lifetimes, std::size_t action) {
  std::vector<HeldBlock> held;
  for (const Lifetime& lifetime : lifetimes) {
    if (lifetime.place && lifetime.born <= action && action < lifetime.freed)
      held.push_back({lifetime.place->size, lifetime.born});
  }
  return held;
}

Holders holders_of(const ClientProgram& program, const std::vector<ReplayedAction>& replayed,
                   const std::vector<Lifetime>& lifetimes, const std::string& at) {
  Holders holders;
  ProgramUses uses = uses_of(program);
  holders.uses = std::move(uses.blocks);
  holders.steps = uses.steps;
  if (replayed.empty()) return holders;
  const std::optional<std::size_t> asked = moment_of(program, at);
  const std::size_t last = replayed.size() - 1;
  holders.at = std::min(last, asked.value_or(first_highest(replayed, &ReplayedAction::allocated)));
  holders.pins_at = std::min(last, asked.value_or(first_highest(replayed, &ReplayedAction::reserved)));
  const Marks marks(program);
  const auto in_words = [&](const char* peak, std::size_t action) -> std::string {
    if (asked) {
      const std::string name = marks.at(*asked);
      return name.empty() ? "the first failure" : "the end of " + name;
    }
    const std::string mark = marks.around(action);
    return peak + (mark.empty() ? "" : " (in " + mark + ')');
  };
  holders.moment = in_words("the peak", holders.at);
  holders.pins_moment = in_words("the peak of reserved memory", holders.pins_at);
  for (std::size_t i = 0; i < marks.actions.size(); ++i)
    holders.timeline.marks.emplace_back(marks.actions[i], marks.names[i]);
  holders.reserved = replayed[holders.pins_at].reserved;
  std::array<Bytes, kCategoryNames.size()> most{};
  add_timeline(program, replayed, lifetimes, holders, most);
  const auto how = evidence_of(lifetimes, holders.uses);
  std::array<CategoryShare, kCategoryNames.size()> shares{};
  for (const HeldBlock& block : held_after(lifetimes, holders.at)) {
    CategoryShare& share =
        shares[static_cast<std::size_t>(holders.uses[program.actions[block.action].block].category)];
    share.bytes += block.size;
    ++share.blocks;
    holders.allocated += block.size;
    ++holders.blocks;
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shares[i].category = static_cast<Category>(i);
    shares[i].most = most[i];
    shares[i].how = how[i];
    if (most[i] > 0) holders.categories.push_back(shares[i]);
  }
  return holders;
}

namespace {

/// What the blocks of each pin of `base` hold in another replay, and all that is idle there.
struct IdleThere {
  std::vector<Bytes> held;
  Bytes all = 0;

  IdleThere(const Holders& base, const std::vector<Pin>& other) {
    std::unordered_map<ProgramBlock, std::vector<std::size_t>> pins_by_block;
    for (std::size_t i = 0; i < other.size(); ++i) {
      all += other[i].idle;
      for (const ProgramBlock block : other[i].blocks) pins_by_block[block].push_back(i);
    }
    for (const HeldIdle& pin : base.pins) {
      std::set<std::size_t> pins;  // those that any of its blocks is in
      for (const ProgramBlock block : pin.pin.blocks) {
        const auto found = pins_by_block.find(block);
        if (found != pins_by_block.end()) pins.insert(found->second.begin(), found->second.end());
      }
      held.push_back(0);
      for (const std::size_t number : pins) held.back() += other[number].idle;
    }
  }

  [[nodiscard]] bool is_gone(const Holders& base, std::size_t pin) const {
    const Pin& held_idle = base.pins[pin].pin;
    return held_idle.holder == Pin::Holder::blocks && all < base.idle && kGone * held[pin] < held_idle.idle;
  }
};

std::optional<TriedRemedy> tried(const ClientProgram& program, const ReplaySetup& setup,
                                 const std::vector<Lifetime>& lifetimes, Bytes reserved,
                                 const Holders& holders, std::size_t pin, Remedy remedy) {
  const std::vector<bool> like = blocks_like(lifetimes, holders.uses, holders.pins[pin].pin.blocks);
  const auto way = changed(program, lifetimes, remedy, like, holders.pins_at);
  if (!way) return std::nullopt;
  PlacedBlocks placed;
  placed.action = way->action;
  const ProgramOutcome outcome = replay_program(way->program, setup, {.placed = &placed});
  for (auto& [address, block] : placed.blocks) block = way->original[block];
  const IdleThere there(holders, pins_of(placed));
  return TriedRemedy{.remedy = remedy,
                     .held = there.held[pin],
                     .reserved = outcome.highest_reserved,
                     .frees = outcome.fits() && outcome.highest_reserved <= reserved + reserved / kSamePeak &&
                              there.is_gone(holders, pin)};
}

}  // namespace

std::vector<bool> gone_pins(const Holders& base, const std::vector<Pin>& other) {
  const IdleThere there(base, other);
  std::vector<bool> gone;
  for (std::size_t i = 0; i < base.pins.size(); ++i) gone.push_back(there.is_gone(base, i));
  return gone;
}

void try_remedies(const ClientProgram& program, const ReplaySetup& setup,
                  const std::vector<Lifetime>& lifetimes, Bytes reserved, unsigned threads,
                  Holders& holders) {
  constexpr std::size_t kWays = kRemedyNames.size();
  const std::size_t affordable = kTriedActions / kWays / std::max<std::size_t>(1, program.actions.size());
  std::size_t pins = std::min({kTriedPins, affordable, holders.pins.size()});
  while (pins > 0 && holders.pins[pins - 1].pin.blocks.empty()) --pins;
  std::vector<std::optional<TriedRemedy>> found(pins * kWays);
  for_each_index(found.size(), threads, [&](std::size_t i) {
    found[i] = tried(program, setup, lifetimes, reserved, holders, i / kWays, static_cast<Remedy>(i % kWays));
  });
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i]) holders.pins[i / kWays].tried.push_back(*found[i]);
  }
}

}  // namespace vramlab
