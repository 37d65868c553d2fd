#include "capi/vramlab_policy.h"

#include <exception>
#include <string>

#include "capi/session_text.hpp"
#include "sim/core/error.hpp"

struct vramlab_session {
  std::unique_ptr<vramlab::TunerSession> session;
  std::string reason;
  std::string text;  // what the last call that returns text gave
};

namespace {

using vramlab::InputError;

thread_local std::string last_error;

// No exception may leave a C function.
template <class Work>
int guarded(const Work& work) {
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
  }
  return 1;
}

void require(const void* given, const char* what) {
  if (given == nullptr) throw InputError("", std::string{what} + " is NULL.");
}

std::size_t index_of(const vramlab_session& session, const char* parameter) {
  require(parameter, "the parameter's name");
  const auto index = session.session->space().find(parameter);
  if (index) return *index;
  std::vector<std::string> names;
  for (const auto& known : session.session->space().parameters) names.push_back(known.name);
  throw InputError("", "\"" + std::string{parameter} + "\" is no parameter of this session." +
                           vramlab::suggest_name(parameter, names));
}

vramlab::Observation observation_of(const vramlab_step& step) {
  return {step.iteration,
          vramlab::SimTime{step.time_ns},
          {.allocated = step.allocated,
           .peak_allocated = step.peak_allocated,
           .reserved = step.reserved,
           .peak_reserved = step.peak_reserved,
           .total = step.total,
           .alloc_retries = step.alloc_retries,
           .allocator_ooms = step.allocator_ooms},
          step.iteration};
}

}  // namespace

vramlab_session* vramlab_session_create(const char* json) {
  vramlab_session* made = nullptr;
  guarded([&] {
    require(json, "the session's description");
    made = new vramlab_session{vramlab::session_from_text(json), {}, {}};
  });
  return made;
}

void vramlab_session_destroy(vramlab_session* session) { delete session; }

int vramlab_session_after_step(vramlab_session* session, const vramlab_step* step,
                               vramlab_decision* decision) {
  return guarded([&] {
    require(session, "the session");
    require(step, "the step");
    require(decision, "the decision");
    if (step->total == 0) throw InputError("", "the step says that the device has 0 bytes in all.");
    if (session->session->ended()) throw InputError("", "the policy has ended its run: " + session->reason);
    const auto result = step->oom != 0 ? vramlab::StepResult::oom : vramlab::StepResult::ok;
    vramlab::StepDecision made = session->session->after_step(result, observation_of(*step));
    session->reason = std::move(made.reason);
    *decision = {made.empty_cache, made.reset_peak, made.retry, made.end_run, made.moved};
  });
}

int vramlab_session_get(const vramlab_session* session, const char* parameter, int64_t* value) {
  return guarded([&] {
    require(session, "the session");
    require(value, "the place for the value");
    *value = session->session->point()[index_of(*session, parameter)];
  });
}

int vramlab_session_set(vramlab_session* session, const char* parameter, int64_t value) {
  return guarded([&] {
    require(session, "the session");
    vramlab::Point point = session->session->point();
    point[index_of(*session, parameter)] = value;
    session->session->set_point(point);
  });
}

const char* vramlab_session_reason(const vramlab_session* session) {
  return session == nullptr ? "" : session->reason.c_str();
}

const char* vramlab_session_adjustments(vramlab_session* session) {
  const int failed = guarded([&] {
    require(session, "the session");
    session->text = vramlab::adjustments_text(*session->session);
  });
  return failed != 0 ? nullptr : session->text.c_str();
}

const char* vramlab_session_statistics(vramlab_session* session) {
  const int failed = guarded([&] {
    require(session, "the session");
    session->text = vramlab::statistics_text(*session->session);
  });
  return failed != 0 ? nullptr : session->text.c_str();
}

const char* vramlab_last_error(void) { return last_error.c_str(); }
