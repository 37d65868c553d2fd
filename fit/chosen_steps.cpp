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

// Where a workspace was refused, the library goes on without it at that shape.
bool lacks_workspaces(const StepRecord& step, const RecordedRun& run) {
  for (const StepRecord& earlier : run.steps) {
    if (earlier.mark.parameters == step.mark.parameters && !earlier.refusals.empty()) return true;
    if (&earlier == &step) break;
  }
  return false;
}

// Whether a step succeeded at the shape of `step` of which `stands(the step, its run)` holds.
template <class Stands>
bool is_seen(const StepRecord& step, const std::vector<RecordedRun>& runs, const Stands& stands) {
  for (const RecordedRun& run : runs) {
    for (const StepRecord& other : run.steps) {
      if (!other.mark.oom && other.mark.parameters == step.mark.parameters && stands(other, run)) return true;
    }
  }
  return false;
}

bool has_workspaces(const StepRecord& step, const RecordedRun& run) { return !lacks_workspaces(step, run); }

bool follows_another(const StepRecord& step, const RecordedRun& run) { return &step != &run.steps[0]; }

// Of two steps of one shape; programs that never repeat exactly differ by less.
constexpr Bytes kApart = 100;  // a hundredth

// What steps of one shape should have in common: neither what a first or last step keeps, nor workspaces.
Bytes repeated_bytes(const StepRecord& step) {
  Bytes sum = 0;
  for (const StepAllocation& one : step.allocations) {
    if (one.fate == Fate::freed && !one.is_brief()) sum += one.size;
  }
  return sum;
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
    chosen_.first_shape = chosen_.shape_of(*chosen_.first).value_or(0);
    find_later();
    return std::move(chosen_);
  }

 private:
  void look_at(const StepRecord& step, const RecordedRun& run) {
    if (step.mark.oom) {
      ++failed_;
      return;
    }
    if (lacks_workspaces(step, run) && is_seen(step, runs_, has_workspaces)) return;
    if (chosen_.first == nullptr) chosen_.first = &step;
    // A first step finds no gradients to free, so that it cannot stand for later ones.
    if (keeps_ && !follows_another(step, run)) {
      if (is_seen(step, runs_, follows_another)) return;
      if (chosen_.first != &step) {
        seen_once_.push_back(step.mark.label);
        return;
      }
      chosen_.first_is_alone = true;
    }
    settle(step, run);
  }

  void settle(const StepRecord& step, const RecordedRun& run) {
    ++visits_;
    const std::size_t number = static_cast<std::size_t>(&step - run.steps.data()) + 1;
    const std::optional<std::size_t> shape = chosen_.shape_of(step);
    if (!shape) {
      chosen_.settled.push_back(&step);
      recordings_.push_back(&run);
      numbers_.push_back(number);
    } else if (recordings_[*shape] == &run) {  // another recording's steps may differ a little
      compare(*shape, step, number);
      chosen_.settled[*shape] = &step;
      numbers_[*shape] = number;
    }
  }

  /// Notes two steps that are said to be alike and are not.
  void compare(std::size_t shape, const StepRecord& step, std::size_t number) {
    const Bytes before = repeated_bytes(*chosen_.settled[shape]);
    const Bytes now = repeated_bytes(step);
    if (std::max(before, now) - std::min(before, now) <= std::max(before, now) / kApart) return;
    if (unlike_++ > 0) return;
    std::string point;
    for (const auto& [name, value] : step.mark.parameters.scalars) {
      point += (point.empty() ? "" : ", ") + name + '=' + std::to_string(value);
    }
    unlike_text_ = "steps " + std::to_string(numbers_[shape]) + " and " + std::to_string(number) +
                   " both have " + point + " and allocate " + format_bytes(before) + " and " +
                   format_bytes(now);
  }

  void find_later() {
    for (const RecordedRun& run : runs_) {
      const StepRecord* first = std::find_if(run.steps.data(), run.steps.data() + run.steps.size(),
                                             [&](const StepRecord& step) { return &step == chosen_.first; });
      const StepRecord* end = run.steps.data() + run.steps.size();
      if (first == end) continue;
      // What the last one leaves may be gradients that no step came to free.
      const StepRecord* last = end - 1;
      while (last != first && last->mark.oom) --last;
      for (const StepRecord* step = first + 1; step < last; ++step) {
        const bool makes = std::any_of(step->allocations.begin(), step->allocations.end(),
                                       [](const StepAllocation& one) { return one.fate == Fate::forever; });
        if (makes && !step->mark.oom && chosen_.shape_of(*step)) chosen_.later.push_back(step);
      }
      if (2 * chosen_.later.size() > static_cast<std::size_t>(end - first - 1)) chosen_.later.clear();
    }
  }

  void require_enough() const {
    if (chosen_.first == nullptr) {
      throw InputError("", "no recorded step succeeded; there is nothing to fit.");
    }
    if (chosen_.settled.size() > kMostShapes) {
      throw InputError("", "the steps have " + std::to_string(chosen_.settled.size()) +
                               " different shapes; at most " + std::to_string(kMostShapes) + " are fitted.");
    }
    if (visits_ == 1 && runs_[0].steps.size() == 1) {
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
    if (unlike_ > 0) {
      warnings.push_back(unlike_text_ +
                         (unlike_ > 1 ? ", and " + std::to_string(unlike_ - 1) + " more pairs differ" : "") +
                         "; is a parameter missing? Only the later one of each is fitted.");
    }
    if (failed_ > 0) {
      warnings.push_back(std::to_string(failed_) + " steps ran out of memory and are left out.");
    }
  }

  const std::vector<RecordedRun>& runs_;
  bool keeps_;
  ChosenSteps chosen_;
  std::size_t visits_ = 0;
  std::vector<const RecordedRun*> recordings_;  ///< by shape
  std::vector<std::size_t> numbers_;            ///< by shape, of the step in its recording, from 1
  std::size_t unlike_ = 0;
  std::string unlike_text_;  ///< of the first pair
  std::size_t failed_ = 0;
  std::vector<std::string> seen_once_;
};

}  // namespace

std::optional<std::size_t> ChosenSteps::shape_of(const StepRecord& step) const {
  for (std::size_t shape = 0; shape < settled.size(); ++shape) {
    if (settled[shape]->mark.parameters == step.mark.parameters) return shape;
  }
  return std::nullopt;
}

ChosenSteps choose_steps(const std::vector<RecordedRun>& runs, std::vector<std::string>& warnings) {
  return StepChooser(runs).run(warnings);
}

}  // namespace vramlab
