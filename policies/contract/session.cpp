#include "policies/contract/session.hpp"

#include <limits>
#include <sstream>
#include <utility>

namespace vramlab {
namespace {

void require_size(const ParameterSpace& space, const Point& point) {
  if (point.size() == space.size()) return;
  throw InputError("", "a point has " + std::to_string(point.size()) + " values, the workload " +
                           std::to_string(space.size()) + " parameters.");
}

void require_within(const ParameterSpace& space, const Point& point) {
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const Parameter& parameter = space.parameters[i];
    if (point[i] >= parameter.low && point[i] <= parameter.high) continue;
    problems.push_back({parameter.name, "the start value " + std::to_string(point[i]) +
                                            " is out of range. Allowed: " + parameter.name + " " +
                                            std::to_string(parameter.low) + " to " +
                                            std::to_string(parameter.high) + "."});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

constexpr const char* kSavedHead = "tuner-session-1";

// A policy may ask for anything, also for more than 64 bits hold.
std::int64_t saturated_sum(std::int64_t value, std::int64_t delta) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(value, delta, &sum)) return sum;
  return delta > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

template <class Call>
TunerAnswer ask(const Call& call) {
  try {
    return call();
  } catch (const PolicyFault& fault) {
    return {.end_run = true, .reason = fault.what()};
  }
}

}  // namespace

TunerSession::TunerSession(std::unique_ptr<Tuner> tuner, ParameterSpace space, Point start)
    : tuner_(std::move(tuner)), space_(std::move(space)), point_(std::move(start)) {
  require_size(space_, point_);
  require_within(space_, point_);
}

void TunerSession::set_point(Point point) {
  require_size(space_, point);
  point_ = space_.clamp(std::move(point));
}

std::string TunerSession::save() const {
  const std::string tuner = tuner_->save();
  if (tuner.empty()) return {};
  std::string text = kSavedHead;
  for (const std::int64_t value : point_) text += ' ' + std::to_string(value);
  return text + '\n' + tuner;
}

void TunerSession::load(const std::string& text) {
  const std::size_t end = text.find('\n');
  std::istringstream line{text.substr(0, end)};
  std::string head;
  line >> head;
  Point point(space_.size());
  for (std::int64_t& value : point) line >> value;
  if (end == std::string::npos || head != kSavedHead || !line || !(line >> std::ws).eof()) {
    throw InputError("", "this is not a saved session of a tuner with " + std::to_string(space_.size()) +
                             " parameters. Give the text that was saved, unchanged.");
  }
  require_within(space_, point);
  tuner_->load(text.substr(end + 1));
  point_ = std::move(point);
}

void TunerSession::require_running(const Observation& observation) const {
  if (ended_) throw InternalError("a tuner was asked after its run had ended");
  if (observation.memory.total == 0) throw InternalError("an observation says that the device has 0 bytes");
}

StepDecision TunerSession::after_step(StepResult result, const Observation& observation, const Point& ran,
                                      Bytes asked) {
  require_running(observation);
  const TunerQuestion question{point_, result, ran == point_ ? Point{} : ran, asked};
  return obey(ask([&] { return tuner_->decide(question, observation); }), result, observation);
}

// Before a phase nothing moves: what it runs at is settled.
StepDecision TunerSession::on_phase(PhaseReport phase, const Observation& observation) {
  require_running(observation);
  phase.point = point_;
  TunerAnswer answer = ask([&] { return tuner_->note_phase(phase, observation); });
  answer.retry = false;
  if (phase.begins) answer.delta.clear();
  if (!answer.reason.empty()) answer.reason = phase.name + ": " + answer.reason;
  return obey(std::move(answer), StepResult::ok, observation);
}

StepDecision TunerSession::obey(TunerAnswer answer, StepResult result, const Observation& observation) {
  StepDecision decision{.empty_cache = answer.empty_cache,
                        .reset_peak = answer.reset_peak,
                        .retry = answer.retry && result == StepResult::oom,
                        .end_run = answer.end_run,
                        .reason = answer.reason,
                        .log = std::move(answer.log)};
  if (!answer.delta.empty() && answer.delta.size() != space_.size()) {
    decision.end_run = true;
    decision.reason = "the policy gave " + std::to_string(answer.delta.size()) + " changes for " +
                      std::to_string(space_.size()) + " parameters; its run ends here";
  } else if (answer.moves()) {
    apply(answer, result, observation, decision);
  }
  if (decision.end_run) decision.retry = false;
  ended_ = decision.end_run;
  return decision;
}

void TunerSession::apply(const TunerAnswer& answer, StepResult result, const Observation& observation,
                         StepDecision& decision) {
  Point next = point_;
  for (std::size_t i = 0; i < next.size(); ++i) next[i] = saturated_sum(next[i], answer.delta[i]);
  next = space_.clamp(std::move(next));
  if (next == point_) return;

  if (result == StepResult::oom && !decision.reason.starts_with("oom")) {
    decision.reason = decision.reason.empty() ? "oom" : "oom: " + decision.reason;
  }
  decision.moved = true;
  adjustments_.push_back(
      {observation.iteration, observation.time, point_, next, decision.reason, observation.memory});
  point_ = std::move(next);
  if (listener_) listener_(adjustments_.back());
}

}  // namespace vramlab
