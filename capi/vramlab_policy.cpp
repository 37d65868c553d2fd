// A policy session behind C functions: made of a description as JSON text, its books given as JSON text.
#include "capi/vramlab_policy.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "capi/description.hpp"
#include "policies/contract/session.hpp"
#include "policies/tuners/dual_optimizer_options.hpp"

namespace vramlab {
namespace {

constexpr const char* kSection = "training_automations";
constexpr const char* kFile = "options_file";

// A section in JSON is YAML as well, so that one reader knows both.
PolicyChoice read_tuner_choice(const Json& json) {
  PolicyChoice choice = read_choice(json, {"parameters", "cards", kSection, kFile});
  const OptionMap plain = std::exchange(choice.options, {});
  if (json.contains(kFile)) choice.options = load_dual_optimizer_yaml(text_of(json, kFile));
  if (json.contains(kSection)) {
    const Json section = {{kSection, json[kSection]}};
    choice.options = overlay(choice.options, read_dual_optimizer_yaml(section.dump(), "the description"));
  }
  choice.options = overlay(choice.options, plain);
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

/// Makes the session that `json` describes (capi/vramlab_policy.h). Throws InputError with every fault of it.
std::unique_ptr<TunerSession> session_of(const Json& json) {
  const PolicyChoice choice = read_tuner_choice(json);
  Start start = read_parameters(json, bounds_of(choice));
  auto tuner = policies_for(json)->tuners.make(choice, start.space);
  return std::make_unique<TunerSession>(std::move(tuner), std::move(start.space), std::move(start.point));
}

CardsRule cards_rule_of(const Json& json) {
  const std::string rule = text_of(json, "cards");
  if (rule.empty() || rule == "fullest") return CardsRule::fullest;
  if (rule == "sum") return CardsRule::sum;
  throw InputError("/cards", "\"" + rule + "\" is no rule for several cards. Allowed: fullest, sum.");
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

}  // namespace
}  // namespace vramlab

struct vramlab_session {
  std::unique_ptr<vramlab::TunerSession> session;
  vramlab::CardsRule cards = vramlab::CardsRule::fullest;
  bool after_phase = false;  // a phase ended since the last step
  bool new_process = true;   // the step to come is the first of its process
  vramlab::Bytes asked = 0;  // of the step to come, if it fails
  std::string reason;
  std::string log;
  std::string text;  // what the last call that returns text gave
};

namespace {

using vramlab::guarded;
using vramlab::InputError;
using vramlab::require;

std::size_t index_of(const vramlab_session& session, const char* parameter) {
  require(parameter, "the parameter's name");
  const auto index = session.session->space().find(parameter);
  if (index) return *index;
  std::vector<std::string> names;
  for (const auto& known : session.session->space().parameters) names.push_back(known.name);
  throw InputError("", "\"" + std::string{parameter} + "\" is not a parameter of this session." +
                           vramlab::suggest_name(parameter, names));
}

vramlab::StepResult result_of(const vramlab_step* cards, std::uint64_t count) {
  auto result = vramlab::StepResult::ok;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto one = vramlab::step_result(cards[i].oom, "oom");
    if (one == vramlab::StepResult::oom) return one;  // of one card: the step failed for that reason
    if (one != vramlab::StepResult::ok) result = one;
  }
  return result;
}

void give(vramlab_session& session, vramlab::StepDecision made, vramlab_decision& decision) {
  session.reason = std::move(made.reason);
  session.log.clear();
  for (const std::string& line : made.log) session.log += session.log.empty() ? line : '\n' + line;
  decision = {made.empty_cache, made.reset_peak, made.retry, made.end_run, made.moved};
}

// By default what training runs at.
vramlab::Point point_of(const vramlab_session& session, const std::int64_t* values) {
  const vramlab::Point& own = session.session->point();
  return values == nullptr ? own : vramlab::Point(values, values + own.size());
}

void require_running(const vramlab_session* session) {
  require(session, "the session");
  if (session->session->ended()) throw InputError("", "the policy has ended its run: " + session->reason);
}

}  // namespace

vramlab_session* vramlab_session_create(const char* json) {
  vramlab_session* made = nullptr;
  guarded([&] {
    const vramlab::Json described = vramlab::parse_object(json, "the session's description");
    made = new vramlab_session{vramlab::session_of(described), vramlab::cards_rule_of(described)};
  });
  return made;
}

void vramlab_session_destroy(vramlab_session* session) { delete session; }

int vramlab_session_after_step(vramlab_session* session, const vramlab_step* step,
                               vramlab_decision* decision) {
  return vramlab_session_after_cards(session, step, 1, decision);
}

int vramlab_session_after_cards(vramlab_session* session, const vramlab_step* cards, uint64_t count,
                                vramlab_decision* decision) {
  return guarded([&] {
    require_running(session);
    require(cards, "the step");
    require(decision, "the decision");
    const vramlab::StepResult result = result_of(cards, count);
    vramlab::Observation observation = vramlab::observation_of(cards, count, session->cards);
    observation.after_phase = session->after_phase;
    observation.new_process = session->new_process;
    give(*session, session->session->after_step(result, observation, {}, session->asked), *decision);
    session->asked = 0;
    session->after_phase = false;
    session->new_process = false;
  });
}

int vramlab_session_phase(vramlab_session* session, const vramlab_phase* phase, const vramlab_step* reading,
                          vramlab_decision* decision) {
  return guarded([&] {
    require_running(session);
    require(phase, "the phase");
    require(phase->name, "the phase's name");
    require(reading, "the reading");
    require(decision, "the decision");
    vramlab::PhaseReport report{
        .name = phase->name,
        .ran = point_of(*session, phase->ran),
        .follow = phase->follow == nullptr ? vramlab::Point{} : point_of(*session, phase->follow),
        .begins = phase->begins != 0,
        .result = vramlab::step_result(phase->oom, "oom"),
        .peak_allocated = vramlab::checked_size(phase->peak_allocated, "peak_allocated"),
        .asked = vramlab::checked_size(phase->asked, "asked")};
    const auto observation = vramlab::observation_of(reading, 1, session->cards);
    give(*session, session->session->on_phase(std::move(report), observation), *decision);
    if (phase->begins == 0) session->after_phase = true;
  });
}

int vramlab_session_asked(vramlab_session* session, uint64_t bytes) {
  return guarded([&] {
    require(session, "the session");
    session->asked = vramlab::checked_size(bytes, "bytes");
  });
}

int vramlab_session_new_process(vramlab_session* session) {
  return guarded([&] {
    require(session, "the session");
    session->new_process = true;
  });
}

const char* vramlab_session_save(vramlab_session* session) {
  const int failed = guarded([&] {
    require(session, "the session");
    session->text = session->session->save();
  });
  return failed != 0 ? nullptr : session->text.c_str();
}

int vramlab_session_load(vramlab_session* session, const char* saved) {
  return guarded([&] {
    require_running(session);
    require(saved, "the saved session");
    session->session->load(saved);
    session->new_process = true;
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
    session->text = vramlab::statistics_text(session->session->tuner());
  });
  return failed != 0 ? nullptr : session->text.c_str();
}

const char* vramlab_last_error(void) { return vramlab::last_error.c_str(); }
