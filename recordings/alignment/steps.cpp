#include "recordings/alignment/steps.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "recordings/lifetimes/rhythm.hpp"

namespace vramlab {
namespace {

using Kind = ClientAction::Kind;

/// Places of each name among the marks.
using MarkPlaces = std::map<std::string, std::vector<std::size_t>>;

MarkPlaces places_of_marks(const ClientProgram& program) {
  MarkPlaces places;
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    if (program.actions[i].kind == Kind::mark) places[program.texts[program.actions[i].detail]].push_back(i);
  }
  return places;
}

// Whether `inner` come between any two of `outer`: then they are phases of one step.
bool are_phases(const std::vector<std::size_t>& outer, const std::vector<std::size_t>& inner) {
  for (std::size_t i = 1; i < outer.size(); ++i) {
    const auto next = std::ranges::upper_bound(inner, outer[i - 1]);
    if (next == inner.end() || *next > outer[i]) return false;
  }
  return true;
}

// The marks that end a step: of one name where the others are phases between them, else all from the first
// name on that comes twice, such as steps that are named by their shapes. Empty where none comes twice.
std::vector<std::size_t> step_marks(const MarkPlaces& places) {
  const std::vector<std::size_t>* best = nullptr;
  for (const auto& [name, marks] : places) {
    if (marks.size() < 2) continue;
    const bool better = best == nullptr || marks.size() > best->size() ||
                        (marks.size() == best->size() && marks.front() > best->front());
    if (better) best = &marks;
  }
  if (best == nullptr) return {};
  bool phases = true;
  std::size_t first = best->front();
  for (const auto& [name, marks] : places) {
    if (marks.size() < 2 || &marks == best) continue;
    phases = phases && are_phases(*best, marks);
    first = std::min(first, marks.front());
  }
  if (phases) return *best;
  std::vector<std::size_t> all;
  for (const auto& [name, marks] : places)
    std::ranges::copy_if(marks, std::back_inserter(all), [&](std::size_t mark) { return mark >= first; });
  std::ranges::sort(all);
  return all;
}

ProgramSteps cut_at_marks(const ClientProgram& program, const MarkPlaces& places,
                          const std::vector<std::size_t>& steps) {
  std::size_t built = 0;  // what is marked once before the first step is no part of it
  for (const auto& [name, marks] : places) {
    if (marks.size() == 1 && marks.front() < steps.front()) built = std::max(built, marks.front() + 1);
  }
  ProgramSteps cut{.ends = {built}, .from = "marks"};
  for (const std::size_t mark : steps) cut.ends.push_back(mark + 1);
  cut.ends.push_back(program.actions.size());
  return cut;
}

// Marks that all have names of their own end a step each, once the model is there.
std::vector<std::size_t> marks_after_building(const ClientProgram& program, const ProgramUses& uses) {
  std::vector<std::size_t> marks;
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    const ClientAction& action = program.actions[i];
    if (action.kind == Kind::mark) marks.push_back(i);
    const bool weight = action.kind == Kind::alloc && uses.blocks[action.block].category == Category::weights;
    if (weight) marks.clear();
  }
  if (!marks.empty()) marks.erase(marks.begin());  // that the model is there
  return marks;
}

ProgramSteps cut_at_gradients(const ClientProgram& program, const ProgramUses& uses) {
  std::vector<std::size_t> births(program.blocks);
  std::size_t built = 0;
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    if (program.actions[i].kind != Kind::alloc) continue;
    const ProgramBlock block = program.actions[i].block;
    births[block] = i;
    if (uses.blocks[block].category == Category::weights) built = i + 1;
  }
  std::vector<bool> workspaces;
  for (const BlockUse& use : uses.blocks) workspaces.push_back(use.category == Category::workspaces);
  ProgramSteps cut{.ends = {built}, .from = "gradients"};
  for (const StepGradients& step : find_gradients(Beats(program), workspaces)) {
    const std::size_t last = births[*std::ranges::max_element(step.blocks)];
    if (last >= cut.ends.back()) cut.ends.push_back(last + 1);
  }
  if (cut.ends.size() == 1) return {};
  cut.ends.push_back(program.actions.size());
  return cut;
}

}  // namespace

std::size_t ProgramSteps::stretch_of(std::size_t action) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(ends, action) - ends.begin());
}

ProgramSteps steps_of(const ClientProgram& program, const ProgramUses& uses) {
  const MarkPlaces places = places_of_marks(program);
  if (const auto marks = step_marks(places); !marks.empty()) return cut_at_marks(program, places, marks);
  if (const auto marks = marks_after_building(program, uses); marks.size() > 1) {
    ProgramSteps cut{.ends = {0}, .from = "marks"};
    for (std::size_t i = 0; i < marks.front(); ++i) {
      if (program.actions[i].kind == Kind::mark) cut.ends.front() = i + 1;
    }
    for (const std::size_t mark : marks) cut.ends.push_back(mark + 1);
    cut.ends.push_back(program.actions.size());
    return cut;
  }
  if (ProgramSteps cut = cut_at_gradients(program, uses); !cut.ends.empty()) return cut;
  const std::size_t end = program.actions.size();
  return {.ends = {program.initial_actions, end, end}, .from = "none"};
}

ClientProgram first_steps(const ClientProgram& program, const ProgramSteps& steps, std::size_t count) {
  ClientProgram cut = program;
  if (count >= steps.count()) return cut;
  cut.actions.resize(steps.ends[count]);
  cut.blocks = static_cast<ProgramBlock>(std::ranges::count(cut.actions, Kind::alloc, &ClientAction::kind));
  return cut;
}

}  // namespace vramlab
