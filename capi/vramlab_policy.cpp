// A policy session behind C functions: made of a description as JSON text, its books given as JSON text.
#include "capi/vramlab_policy.h"

#include <exception>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "policies/contract/policy_set.hpp"
#include "policies/contract/session.hpp"
#include "policies/tuners/dual_optimizer_options.hpp"

namespace vramlab {
namespace {

using Json = nlohmann::ordered_json;

Json parse(const std::string& text) {
  try {
    Json json = Json::parse(text, nullptr, true, true);
    if (json.is_object()) return json;
  } catch (const Json::parse_error& error) {
    throw InputError("", std::string{"the session's description is not JSON: "} + error.what());
  }
  throw InputError("", "the session's description must be a JSON object.");
}

std::int64_t whole_number(const Json& json, const char* key, const std::string& where) {
  if (json.is_object() && json.contains(key) && json[key].is_number_integer())
    return json[key].get<std::int64_t>();
  throw InputError(where + "/" + key, "must be a whole number.");
}

std::string text_of(const Json& json, const char* key) {
  if (!json.contains(key)) return {};
  if (!json[key].is_string()) throw InputError(std::string{"/"} + key, "must be text in quotes.");
  return json[key].get<std::string>();
}

constexpr const char* kSection = "training_automations";
constexpr const char* kFile = "options_file";

OptionMap plain_options(const Json& json) {
  OptionMap options;
  for (const auto& [key, value] : json.items()) {
    const std::string where = "/" + key;
    if (key == "use" || key == "profile" || key == "parameters" || key == kSection || key == kFile) continue;
    if (value.is_boolean()) {
      options.set(key, value.get<bool>(), where);
    } else if (value.is_number_integer()) {
      options.set(key, value.get<std::int64_t>(), where);
    } else if (value.is_number()) {
      options.set(key, value.get<double>(), where);
    } else if (value.is_string()) {
      options.set(key, value.get<std::string>(), where);
    } else {
      throw InputError(where, "an option is a number, true or false, or text in quotes.");
    }
  }
  return options;
}

// A section in JSON is YAML as well, so that one reader knows both.
PolicyChoice read_choice(const Json& json) {
  PolicyChoice choice{.use = text_of(json, "use"), .profile = text_of(json, "profile")};
  if (json.contains(kFile)) choice.options = load_dual_optimizer_yaml(text_of(json, kFile));
  if (json.contains(kSection)) {
    const Json section = {{kSection, json[kSection]}};
    choice.options = overlay(choice.options, read_dual_optimizer_yaml(section.dump(), "the description"));
  }
  choice.options = overlay(choice.options, plain_options(json));
  return choice;
}

struct Bounds {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// What the options say of "batch" and "lq".
std::map<std::string, Bounds> bounds_of(const PolicyChoice& choice) {
  if (choice.use != "dual-optimizer") return {};
  const DualOptimizerOptions options = parse_dual_optimizer(choice.options);
  return {{"batch", {options.min_batch_size, options.max_batch_size}},
          {"lq", {options.min_lq_size, options.max_lq_size}}};
}

struct Start {
  ParameterSpace space;
  Point point;
};

Start read_parameters(const Json& json, const std::map<std::string, Bounds>& known) {
  if (!json.contains("parameters") || !json["parameters"].is_object() || json["parameters"].empty()) {
    throw InputError("/parameters",
                     "must give each parameter, e.g. {\"batch\": {\"start\": 8, \"low\": 1, \"high\": 64}}.");
  }
  Start start;
  for (const auto& [name, value] : json["parameters"].items()) {
    const std::string where = "/parameters/" + name;
    const auto bounds = known.find(name);
    const auto number = [&, &given = value](const char* key, std::int64_t otherwise) {
      const bool may_lack = bounds != known.end() && given.is_object() && !given.contains(key);
      return may_lack ? otherwise : whole_number(given, key, where);
    };
    const Bounds otherwise = bounds == known.end() ? Bounds{} : bounds->second;
    const Parameter parameter{name, number("low", otherwise.low), number("high", otherwise.high)};
    if (parameter.low > parameter.high) throw InputError(where, "\"low\" is above \"high\".");
    start.space.parameters.push_back(parameter);
    start.point.push_back(number("start", parameter.low));
  }
  return start;
}

Json point_json(const ParameterSpace& space, const Point& point) {
  Json json = Json::object();
  for (std::size_t i = 0; i < point.size(); ++i) json[space.parameters[i].name] = point[i];
  return json;
}

/// Makes the session that `text` describes (capi/vramlab_policy.h). Throws InputError with every fault of it.
std::unique_ptr<TunerSession> session_from_text(const std::string& text) {
  const Json json = parse(text);
  const PolicyChoice choice = read_choice(json);
  Start start = read_parameters(json, bounds_of(choice));
  auto tuner = builtin_policies()->tuners.make(choice, start.space);
  return std::make_unique<TunerSession>(std::move(tuner), std::move(start.space), std::move(start.point));
}

std::string adjustments_text(const TunerSession& session) {
  Json json = Json::array();
  for (const Adjustment& adjustment : session.adjustments()) {
    json.push_back({{"iteration", adjustment.iteration},
                    {"from", point_json(session.space(), adjustment.from)},
                    {"to", point_json(session.space(), adjustment.to)},
                    {"reason", adjustment.reason}});
  }
  return json.dump();
}

std::string statistics_text(const TunerSession& session) {
  Json json = Json::object();
  for (const Statistic& statistic : session.tuner().statistics()) json[statistic.name] = statistic.value;
  return json.dump();
}

}  // namespace
}  // namespace vramlab

struct vramlab_session {
  std::unique_ptr<vramlab::TunerSession> session;
  std::string reason;
  std::string log;
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
  throw InputError("", "\"" + std::string{parameter} + "\" is not a parameter of this session." +
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
    made = new vramlab_session{vramlab::session_from_text(json), {}, {}, {}};
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
    session->log.clear();
    for (const std::string& line : made.log) session->log += session->log.empty() ? line : '\n' + line;
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

int vramlab_session_bounds(const vramlab_session* session, const char* parameter, int64_t* low,
                           int64_t* high) {
  return guarded([&] {
    require(session, "the session");
    require(low, "the place for the lowest value");
    require(high, "the place for the highest value");
    const vramlab::Parameter& found = session->session->space().parameters[index_of(*session, parameter)];
    *low = found.low;
    *high = found.high;
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

const char* vramlab_session_log(const vramlab_session* session) {
  return session == nullptr ? "" : session->log.c_str();
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
