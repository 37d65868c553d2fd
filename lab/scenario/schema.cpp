#include "lab/experiment.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/kinds/training/spec.hpp"
#include "lab/kinds/training/spec_fields.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

Json default_json(const OptionValue& value) {
  return std::visit([](const auto& plain) { return Json(plain); }, value);
}

Json option_schema(const OptionDescription& option) {
  Json schema;
  switch (option.type) {
    case OptionType::boolean:
      schema["type"] = "boolean";
      break;
    case OptionType::integer:
      schema = {{"type", "integer"}, {"minimum", option.low}, {"maximum", option.high}};
      break;
    case OptionType::number:
      schema = {{"type", "number"}, {"minimum", option.low}, {"maximum", option.high}};
      break;
    case OptionType::text:
      schema["type"] = "string";
      break;
    case OptionType::choice:
      schema["enum"] = option.choices;
      break;
  }
  schema["default"] = default_json(option.default_value);
  schema["description"] = option.help + (option.unit.empty() ? "" : " [" + option.unit + "]");
  return schema;
}

// Which options an entry may have depends on the policy it uses.
template <class Entry>
Json policy_schema(const Entry& tuner, Json schema) {
  Json& properties = schema["properties"];
  properties["use"] = {{"const", tuner.name}, {"description", tuner.summary}};
  properties.erase("profile");
  if (!tuner.profiles.empty()) {
    for (const TunerProfile& profile : tuner.profiles) properties["profile"]["enum"].push_back(profile.name);
  }
  for (const OptionDescription& option : tuner.options) properties[option.key] = option_schema(option);
  schema["additionalProperties"] = false;
  return schema;
}

template <class Entries>
Json schemas_of(const Entries& entries, const Json& entry) {
  Json alternatives = Json::array();
  for (const auto& one : entries) alternatives.push_back(policy_schema(one, entry));
  return {{"oneOf", std::move(alternatives)}};
}

}  // namespace

Json admitter_schemas(const Json& entry, const PolicySet& known) {
  return schemas_of(known.admitters, entry);
}
Json searcher_schemas(const Json& entry, const PolicySet& known) {
  return schemas_of(known.searchers, entry);
}
Json composer_schemas(const Json& entry, const PolicySet& known) {
  return schemas_of(known.composers, entry);
}

Json training_schema(const PolicySet& known) {
  Json schema = fields_schema(scenario_fields(), /*open=*/false);
  Json& entry = schema["properties"]["policies"]["items"];
  entry = schemas_of(known.tuners, Json(entry));
  return schema;
}

Json scenario_schema(const PolicySet& known) {
  Json whole;
  whole["$schema"] = "http://json-schema.org/draft-07/schema#";
  whole["title"] = "A scenario of vramlab";
  for (const ScenarioKind& kind : scenario_kinds()) whole["oneOf"].push_back(kind.schema(known));
  return whole;
}

}  // namespace vramlab
