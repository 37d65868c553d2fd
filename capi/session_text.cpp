#include "capi/session_text.hpp"

#include <nlohmann/json.hpp>

#include "policies/registry.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

using Json = nlohmann::ordered_json;

Json parse(const std::string& text) {
  try {
    Json json = Json::parse(text, nullptr, true, true);
    if (json.is_object()) return json;
  } catch (const Json::parse_error& error) {
    throw InputError("", std::string{"the session's description is no JSON: "} + error.what());
  }
  throw InputError("", "the session's description must be a JSON object.");
}

std::int64_t whole_number(const Json& json, const char* key, const std::string& where) {
  if (json.is_object() && json.contains(key) && json[key].is_number_integer())
    return json[key].get<std::int64_t>();
  throw InputError(where + "/" + key, "must be a whole number.");
}

struct Start {
  ParameterSpace space;
  Point point;
};

Start read_parameters(const Json& json) {
  if (!json.contains("parameters") || !json["parameters"].is_object() || json["parameters"].empty()) {
    throw InputError("/parameters",
                     "must give each parameter, e.g. {\"batch\": {\"start\": 8, \"low\": 1, \"high\": 64}}.");
  }
  Start start;
  for (const auto& [name, value] : json["parameters"].items()) {
    const std::string where = "/parameters/" + name;
    const Parameter parameter{name, whole_number(value, "low", where), whole_number(value, "high", where)};
    if (parameter.low > parameter.high) throw InputError(where, "\"low\" is above \"high\".");
    start.space.parameters.push_back(parameter);
    start.point.push_back(whole_number(value, "start", where));
  }
  return start;
}

std::string text_of(const Json& json, const char* key) {
  if (!json.contains(key)) return {};
  if (!json[key].is_string()) throw InputError(std::string{"/"} + key, "must be text in quotes.");
  return json[key].get<std::string>();
}

TunerChoice read_choice(const Json& json) {
  TunerChoice choice{
      .use = text_of(json, "use"), .profile = text_of(json, "profile"), .options = {}, .where = ""};
  for (const auto& [key, value] : json.items()) {
    const std::string where = "/" + key;
    if (key == "use" || key == "profile" || key == "parameters") continue;
    if (value.is_boolean()) {
      choice.options.set(key, value.get<bool>(), where);
    } else if (value.is_number_integer()) {
      choice.options.set(key, value.get<std::int64_t>(), where);
    } else if (value.is_number()) {
      choice.options.set(key, value.get<double>(), where);
    } else if (value.is_string()) {
      choice.options.set(key, value.get<std::string>(), where);
    } else {
      throw InputError(where, "an option is a number, true or false, or text in quotes.");
    }
  }
  return choice;
}

Json point_json(const ParameterSpace& space, const Point& point) {
  Json json = Json::object();
  for (std::size_t i = 0; i < point.size(); ++i) json[space.parameters[i].name] = point[i];
  return json;
}

}  // namespace

std::unique_ptr<TunerSession> session_from_text(const std::string& text) {
  const Json json = parse(text);
  Start start = read_parameters(json);
  auto tuner = make_tuner(read_choice(json), start.space);
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

}  // namespace vramlab
