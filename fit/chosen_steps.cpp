#include <algorithm>

#include "core/error.hpp"
#include "fit/step_record.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {
namespace {

bool keeps_something(const RecordedRun& run) {
  return std::any_of(run.steps.begin(), run.steps.end(), [](const StepRecord& step) {
    return std::any_of(step.allocations.begin(), step.allocations.end(),
                       [](const StepAllocation& one) { return one.fate == Fate::kept; });
  });
}

bool is_seen_again(const StepRecord& step, const std::vector<RecordedRun>& runs) {
  for (const RecordedRun& run : runs) {
    for (std::size_t other = 1; other < run.steps.size(); ++other) {
      if (!run.steps[other].mark.oom && run.steps[other].mark.parameters == step.mark.parameters) return true;
    }
  }
  return false;
}

// Where a workspace was refused, the library goes on without it at that shape.
bool lacks_workspaces(const StepRecord& step, const RecordedRun& run) {
  for (const StepRecord& earlier : run.steps) {
    if (earlier.mark.parameters == step.mark.parameters && !earlier.refusals.empty()) return true;
    if (&earlier == &step) break;
  }
  return false;
}

bool is_seen_whole(const StepRecord& step, const std::vector<RecordedRun>& runs) {
  for (const RecordedRun& run : runs) {
    for (const StepRecord& other : run.steps) {
      if (!other.mark.oom && other.mark.parameters == step.mark.parameters && !lacks_workspaces(other, run)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

ChosenSteps choose_steps(const std::vector<RecordedRun>& runs, std::vector<std::string>& warnings) {
  ChosenSteps chosen;
  std::vector<std::size_t> visits;
  std::vector<const RecordedRun*> recordings;  // by shape
  std::size_t failed = 0;
  std::vector<std::string> seen_once;
  const bool keeps = std::any_of(runs.begin(), runs.end(), keeps_something);
  for (const RecordedRun& run : runs) {
    for (const StepRecord& step : run.steps) {
      if (step.mark.oom) {
        ++failed;
        continue;
      }
      if (lacks_workspaces(step, run) && is_seen_whole(step, runs)) continue;
      if (chosen.first == nullptr) chosen.first = &step;
      // A first step finds no gradients to free, so that it cannot stand for later ones.
      if (keeps && &step == &run.steps[0]) {
        if (is_seen_again(step, runs)) continue;
        if (chosen.first != &step) {
          seen_once.push_back(step.mark.label);
          continue;
        }
        chosen.first_is_alone = true;
      }
      const auto known = std::find_if(
          chosen.settled.begin(), chosen.settled.end(),
          [&](const StepRecord* other) { return other->mark.parameters == step.mark.parameters; });
      if (known == chosen.settled.end()) {
        chosen.settled.push_back(&step);
        visits.push_back(1);
        recordings.push_back(&run);
      } else {
        const auto number = static_cast<std::size_t>(known - chosen.settled.begin());
        if (recordings[number] == &run) *known = &step;  // another recording's steps may differ a little
        ++visits[number];
      }
    }
  }
  if (chosen.first == nullptr) throw InputError("", "no recorded step succeeded; there is nothing to fit.");
  if (chosen.settled.size() > kMostShapes) {
    throw InputError("", "the steps have " + std::to_string(chosen.settled.size()) +
                             " different shapes; at most " + std::to_string(kMostShapes) + " are fitted.");
  }
  if (chosen.first_is_alone) {
    warnings.push_back(
        "the first step of the process (" + chosen.first->mark.label +
        ") is the only one of its shape; where that shape frees old gradients is taken from the "
        "nearest other one. Record every shape twice.");
  }
  for (const std::string& label : seen_once) {
    warnings.push_back("the step " + label +
                       " is the first of its process and the only one of its shape; it is left "
                       "out. Record every shape twice.");
  }
  if (failed > 0) warnings.push_back(std::to_string(failed) + " steps ran out of memory and are left out.");
  if (visits.size() == 1 && visits[0] == 1 && runs[0].steps.size() == 1) {
    throw InputError("",
                     "only one step is recorded. Record every shape twice: what the first step of a process "
                     "keeps for good is told from gradients by the second.");
  }
  for (std::size_t shape = 0; shape < chosen.settled.size(); ++shape) {
    if (chosen.settled[shape]->mark.parameters == chosen.first->mark.parameters) chosen.first_shape = shape;
  }
  return chosen;
}

}  // namespace vramlab
