// What tables of keys (core/records) look like as a JSON schema and in a document, and the schema of
// scenarios.
#pragma once

#include <string>
#include <vector>

#include "core/records/field.hpp"
#include "core/records/record.hpp"
#include "lab/json.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// A JSON schema (draft 7) of an object with `fields`.
Json fields_schema(const std::vector<Field>& fields, bool open);

/// That of one value.
Json field_schema(const Field& field);

/// The default as JSON; null if there is none.
Json default_json(const Field& field);

/// The schema of `entry`, one of "policies", where it uses the policy called `name`: its options are keys.
Json policy_schema(Json entry, const std::string& name, const std::string& summary,
                   const std::vector<Field>& options, const std::vector<PolicyProfile>& profiles);

/// The schema of files of a kind whose "policies" are those of `family`.
template <class Family>
Json kind_schema(const RecordBase& table, const Family& family) {
  Json schema = fields_schema(table.fields, table.open);
  Json& entry = schema["properties"]["policies"]["items"];
  Json alternatives = Json::array();
  for (const auto& policy : family) {
    alternatives.push_back(
        policy_schema(entry, policy.name, policy.summary, policy.options, policy.profiles));
  }
  entry = {{"oneOf", std::move(alternatives)}};
  return schema;
}

/// One key as a document shows it, with what it may hold.
struct FieldRow {
  std::string key;            ///< with the way to it: "device.others[].bytes"
  std::string value;          ///< "text", "whole number", "size", "one of a, b", …
  std::string range;          ///< "1 to 64"; empty if there is none
  std::string default_value;  ///< "0.85", "32GiB"; empty if there is none
  std::string meaning;
  bool required = false;
};

/// All keys of an object with `fields`, each object's own behind it; `way` leads to the object.
std::vector<FieldRow> field_rows(const std::vector<Field>& fields, const std::string& way = {});

/// The JSON schema of scenario files of every kind, with the options of every policy of `known`.
Json scenario_schema(const PolicySet& known = *builtin_policies());

}  // namespace vramlab
