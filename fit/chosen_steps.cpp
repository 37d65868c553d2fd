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

class StepChooser {
 public:
  explicit StepChooser(const std::vector<RecordedRun>& runs)
      : runs_(runs), keeps_(std::any_of(runs.begin(), runs.end(), keeps_something)) {}

  ChosenSteps run(std::vector<std::string>& warnings) {
    for (const RecordedRun& run : runs_) {
      for (const StepRecord& step : run.steps) look_at(step, run);
    }
    require_enough();
    warn(warnings);
    for (std::size_t shape = 0; shape < chosen_.settled.size(); ++shape) {
      if (chosen_.settled[shape]->mark.parameters == chosen_.first->mark.parameters) {
        chosen_.first_shape = shape;
      }
    }
    return std::move(chosen_);
  }

 private:
  void look_at(const StepRecord& step, const RecordedRun& run) {
    if (step.mark.oom) {
      ++failed_;
      return;
    }
    if (lacks_workspaces(step, run) && is_seen_whole(step, runs_)) return;
    if (chosen_.first == nullptr) chosen_.first = &step;
    // A first step finds no gradients to free, so that it cannot stand for later ones.
    if (keeps_ && &step == &run.steps[0]) {
      if (is_seen_again(step, runs_)) return;
      if (chosen_.first != &step) {
        seen_once_.push_back(step.mark.label);
        return;
      }
      chosen_.first_is_alone = true;
    }
    settle(step, run);
  }

  void settle(const StepRecord& step, const RecordedRun& run) {
    const auto known =
        std::find_if(chosen_.settled.begin(), chosen_.settled.end(),
                     [&](const StepRecord* other) { return other->mark.parameters == step.mark.parameters; });
    if (known == chosen_.settled.end()) {
      chosen_.settled.push_back(&step);
      visits_.push_back(1);
      recordings_.push_back(&run);
      return;
    }
    const auto number = static_cast<std::size_t>(known - chosen_.settled.begin());
    if (recordings_[number] == &run) *known = &step;  // another recording's steps may differ a little
    ++visits_[number];
  }

  void require_enough() const {
    if (chosen_.first == nullptr) {
      throw InputError("", "no recorded step succeeded; there is nothing to fit.");
    }
    if (chosen_.settled.size() > kMostShapes) {
      throw InputError("", "the steps have " + std::to_string(chosen_.settled.size()) +
                               " different shapes; at most " + std::to_string(kMostShapes) + " are fitted.");
    }
    if (visits_.size() == 1 && visits_[0] == 1 && runs_[0].steps.size() == 1) {
      throw InputError("",
                       "only one step is recorded. Record every shape twice: what the first step of a "
                       "process keeps for good is told from gradients by the second.");
    }
  }

  void warn(std::vector<std::string>& warnings) const {
    if (chosen_.first_is_alone) {
      warnings.push_back(
          "the first step of the process (" + chosen_.first->mark.label +
          ") is the only one of its shape; where that shape frees old gradients is taken from the "
          "nearest other one. Record every shape twice.");
    }
    for (const std::string& label : seen_once_) {
      warnings.push_back("the step " + label +
                         " is the first of its process and the only one of its shape; it is left "
                         "out. Record every shape twice.");
    }
    if (failed_ > 0) {
      warnings.push_back(std::to_string(failed_) + " steps ran out of memory and are left out.");
    }
  }

  const std::vector<RecordedRun>& runs_;
  bool keeps_;
  ChosenSteps chosen_;
  std::vector<std::size_t> visits_;             ///< by shape
  std::vector<const RecordedRun*> recordings_;  ///< by shape
  std::size_t failed_ = 0;
  std::vector<std::string> seen_once_;
};

}  // namespace

ChosenSteps choose_steps(const std::vector<RecordedRun>& runs, std::vector<std::string>& warnings) {
  return StepChooser(runs).run(warnings);
}

}  // namespace vramlab
