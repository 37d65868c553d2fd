#include "lab/judge/leaks.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "recordings/snapshot/stack_groups.hpp"

namespace vramlab {
namespace {

using Act = ClientAction::Kind;

constexpr std::size_t kLeastSteps = 2;
constexpr std::size_t kReplayedActions = 4'000'000;

/// Of the blocks of one place and size, those that are left, by step.
using Left = std::map<std::size_t, std::vector<ProgramBlock>>;

// What is freed behind the last step, when the program ends, was left as well.
bool is_left(const ReadProgram& read, const Lifetime& lifetime) {
  return lifetime.freed >= read.steps.ends[read.steps.count()];
}

bool is_of_model(Category category) {
  return category == Category::weights || category == Category::optimizer_state;
}

StepLeak leak_of(const ReadProgram& read, const Left& left) {
  StepLeak leak;
  for (const auto& [step, blocks] : left) {
    if (leak.blocks.empty()) leak.first_step = step;
    Bytes bytes = 0;
    for (const ProgramBlock block : blocks) bytes += read.lifetimes[block].rounded;
    if (step < read.steps.count() || leak.per_step == 0) leak.per_step = bytes;
    leak.bytes += bytes;
    leak.blocks.insert(leak.blocks.end(), blocks.begin(), blocks.end());
  }
  leak.steps = left.size();
  const ProgramBlock first = leak.blocks.front();
  const StackId stack = read.lifetimes[first].stack;
  if (stack < read.program.stacks.size() && !read.program.stacks[stack].empty()) {
    leak.frames = shown_frames(read.program.frames, read.program.stacks[stack]);
    leak.where = leak.frames.front();
  } else {
    leak.where = std::string{kCategoryNames[static_cast<std::size_t>(read.uses.blocks[first].category)]} +
                 " of " + format_bytes(read.lifetimes[first].requested) + ", no stack recorded";
  }
  return leak;
}

/// A program that goes on with copies of its last step.
class Prolonged {
 public:
  explicit Prolonged(const ReadProgram& read)
      : read_(read), program_(read.program), number_(read.program.blocks) {
    program_.actions.resize(read.steps.ends[read.steps.count()]);
    program_.frames.clear();
    program_.stacks.clear();
    program_.initial_actions = std::min(program_.initial_actions, program_.actions.size());
    for (ProgramBlock block = 0; block < number_.size(); ++block) number_[block] = block;
    pair_up_steps();
  }

  // What the last step freed of the one before, the next copy frees of the last.
  void add_step() {
    const std::size_t last = read_.steps.count();
    std::vector<ProgramBlock> made = number_;
    for (std::size_t i = read_.steps.begin_of(last); i < read_.steps.ends[last]; ++i) {
      ClientAction action = read_.program.actions[i];
      if (action.kind == Act::mark) continue;
      if (action.kind == Act::alloc) {
        action.detail = 0;
        const ProgramBlock copy = program_.blocks++;
        made[action.block] = copy;
        action.block = copy;
      } else if (is_of_block(action.kind)) {
        const bool here = read_.lifetimes[action.block].born >= read_.steps.begin_of(last);
        const auto heir = heir_.find(action.block);
        if (!here && heir == heir_.end()) continue;  // what can be freed only once
        action.block = here ? made[action.block] : number_[heir->second];
      }
      program_.actions.push_back(action);
    }
    number_ = std::move(made);
  }
  [[nodiscard]] const ClientProgram& program() const { return program_; }

 private:
  static bool is_of_block(Act kind) {
    return kind == Act::free || kind == Act::record_stream || kind == Act::finish;
  }

  // Of each block of the step before that the last step frees, the one of the last step that takes its place:
  // among those with the same place and size that are alive at the end of their step, the one of the same
  // number.
  void pair_up_steps() {
    const std::size_t last = read_.steps.count();
    if (last < 2) return;
    using Like = std::tuple<std::uint32_t, Bytes>;
    std::map<Like, std::vector<ProgramBlock>> at_end;
    const auto outlives = [&](const Lifetime& one, std::size_t step) {
      return one.born >= read_.steps.begin_of(step) && one.born < read_.steps.ends[step] &&
             one.freed >= read_.steps.ends[step];
    };
    for (ProgramBlock block = 0; block < read_.lifetimes.size(); ++block) {
      const Lifetime& one = read_.lifetimes[block];
      if (outlives(one, last)) at_end[{one.stack, one.requested}].push_back(block);
    }
    std::map<Like, std::size_t> next;
    for (ProgramBlock block = 0; block < read_.lifetimes.size(); ++block) {
      const Lifetime& one = read_.lifetimes[block];
      if (!outlives(one, last - 1)) continue;
      const auto& heirs = at_end[{one.stack, one.requested}];
      const std::size_t number = next[{one.stack, one.requested}]++;
      if (one.freed < read_.steps.ends[last] && number < heirs.size()) heir_[block] = heirs[number];
    }
  }

  const ReadProgram& read_;
  ClientProgram program_;
  std::vector<ProgramBlock> number_;  ///< by block of the recording: its latest copy
  std::map<ProgramBlock, ProgramBlock> heir_;
};

}  // namespace

std::vector<StepLeak> leaks_of(const ReadProgram& read) {
  const std::size_t steps = read.steps.count();
  using Like = std::tuple<std::string, Bytes, std::uint32_t>;
  std::map<Like, Left> groups;
  std::vector<std::string> lines;
  for (const auto& stack : read.program.stacks)
    lines.push_back(stack.empty() ? "" : shown_frames(read.program.frames, stack).front());
  for (ProgramBlock block = 0; block < read.lifetimes.size(); ++block) {
    const Lifetime& one = read.lifetimes[block];
    const std::size_t step = read.steps.stretch_of(one.born);
    if (one.before_recording || one.rounded == 0 || step == 0 || step > steps || !is_left(read, one))
      continue;
    const std::string line = one.stack < lines.size() ? lines[one.stack] : "";
    groups[{line, line.empty() ? one.requested : 0, one.stream == 0 ? 0 : 1}][step].push_back(block);
  }
  std::vector<StepLeak> leaks;
  for (const auto& [like, left] : groups) {
    const std::size_t counted = left.size() - left.count(steps);
    const std::size_t least = std::max(kLeastSteps, (steps + 1) / 3);
    const bool of_model = is_of_model(read.uses.blocks[left.begin()->second.front()].category) && counted < 3;
    if (counted >= least && !of_model) leaks.push_back(leak_of(read, left));
  }
  std::ranges::stable_sort(leaks, std::ranges::greater{}, &StepLeak::bytes);
  return leaks;
}

LeakForecast forecast_of(const ReadProgram& read, const ReplaySetup& setup, Bytes room) {
  LeakForecast forecast{.recorded_steps = read.steps.count(), .room = room};
  Prolonged prolonged(read);
  const std::size_t begin = read.steps.begin_of(read.steps.count());
  const std::size_t step = std::max<std::size_t>(1, read.steps.ends[read.steps.count()] - begin);
  std::vector<std::size_t> ends(read.steps.ends.begin(), read.steps.ends.end() - 1);
  while (prolonged.program().actions.size() + step < kReplayedActions &&
         ends.size() < kReplayedActions / 64) {
    prolonged.add_step();
    ends.push_back(prolonged.program().actions.size());
  }
  std::vector<ReplayedAction> actions;
  replay_program(prolonged.program(), setup, {.actions = &actions});
  std::vector<Bytes> highest;  // reserved, by stretch
  std::size_t at = 0;
  for (const std::size_t end : ends) {
    highest.push_back(highest.empty() ? 0 : highest.back());
    for (; at < std::min(end, actions.size()); ++at) {
      highest.back() = std::max(highest.back(), actions[at].reserved);
      if (actions[at].failed && !forecast.full_at) forecast.full_at = highest.size() - 1;
    }
  }
  forecast.replayed_steps = ends.size() - 1;
  forecast.reserved = highest[std::min(forecast.recorded_steps, highest.size() - 1)];
  const std::size_t last =
      forecast.full_at ? *forecast.full_at - (*forecast.full_at > 0 ? 1 : 0) : highest.size() - 1;
  const std::size_t middle = std::max(forecast.recorded_steps, last / 2);
  if (last > middle) {
    const Bytes grown = highest[last] - highest[middle];
    forecast.reserved_per_step = (grown + (last - middle) - 1) / (last - middle);
  }
  if (!forecast.full_at && forecast.reserved_per_step > 0) {
    forecast.full_at = last + (room - std::min(room, highest[last])) / forecast.reserved_per_step + 1;
    forecast.extrapolated = true;
  }
  return forecast;
}

}  // namespace vramlab
