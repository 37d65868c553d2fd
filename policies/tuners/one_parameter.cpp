#include "policies/tuners/one_parameter.hpp"

#include <algorithm>

namespace vramlab {

void Period::add(const TunerQuestion& question, const MemoryView& memory) {
  ++steps_;
  peak_ = std::max(peak_, share_of_total(memory.peak_allocated, memory));
  failed_ = failed_ || question.result == StepResult::oom;
  retries_ = memory.alloc_retries - std::min(memory.alloc_retries, retries_before_);
}

void Period::restart(const MemoryView& memory) {
  *this = Period{length_};
  retries_before_ = memory.alloc_retries;
}

OneParameterTuner::OneParameterTuner(const char* policy, const OneParameterOptions& options,
                                     const ParameterSpace& space, AfterFailure after_failure)
    : index_(require_parameter(space, options.parameter, policy)),
      parameter_(space.parameters[index_]),
      period_(options.adjustment_frequency),
      after_failure_(after_failure) {}

TunerAnswer OneParameterTuner::decide(const TunerQuestion& question, const Observation& observation) {
  period_.add(question, observation.memory);
  const bool ended_early = period_.failed() && after_failure_ == AfterFailure::look_at_once;
  if (!period_.complete() && !ended_early) return {};
  const Look found = look(period_, question.point[index_]);
  period_.restart(observation.memory);

  TunerAnswer answer{.reset_peak = true, .reason = found.why + ": no change"};
  if (!found.moves) return answer;
  answer.delta.assign(question.point.size(), 0);
  answer.delta[index_] = found.change;
  answer.reason = found.why + ": " + parameter_.name + " " + signed_number(found.change);
  return answer;
}

std::size_t require_parameter(const ParameterSpace& space, const std::string& parameter,
                              const std::string& policy) {
  if (parameter.empty()) return space.find("batch").value_or(0);
  if (const auto index = space.find(parameter)) return *index;
  std::vector<std::string> names;
  for (const Parameter& candidate : space.parameters) names.push_back(candidate.name);
  throw InputError("", "the policy " + policy + " moves \"" + parameter +
                           "\", which this workload does not have." + suggest_name(parameter, names));
}

}  // namespace vramlab
