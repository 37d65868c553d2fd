#include "lab/scenario/schema.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/scenario/fields.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

constexpr const char* kSizePattern = "^[0-9]+(\\.[0-9]+)? *(B|KiB|MiB|GiB|TiB)?$";

/// What values of a kind look like, in a document and as a JSON schema.
struct KindForm {
  FieldKind kind;
  std::string name;  ///< but of a choice, which has its words
  Json schema;       ///< without what the field itself adds
};

const KindForm& form_of(FieldKind kind) {
  static const Json integer{{"type", "integer"}};
  static const std::vector<KindForm> forms{
      {FieldKind::boolean, "true or false", {{"type", "boolean"}}},
      {FieldKind::integer, "whole number", integer},
      {FieldKind::number, "number", {{"type", "number"}}},
      {FieldKind::text, "text", {{"type", "string"}}},
      {FieldKind::choice, "", Json::object()},
      {FieldKind::size,
       "size",
       {{"type", Json::array({"string", "integer"})}, {"pattern", kSizePattern}, {"minimum", 0}}},
      {FieldKind::object, "object", Json::object()},
      {FieldKind::list, "list of objects", {{"type", "array"}}},
      {FieldKind::values,
       "a value for each parameter",
       {{"type", "object"}, {"additionalProperties", integer}}},
      {FieldKind::bounds,
       "[low, high] for each parameter",
       {{"type", "object"},
        {"additionalProperties", {{"type", "array"}, {"items", integer}, {"minItems", 2}, {"maxItems", 2}}}}},
      {FieldKind::bound,
       "number, size, true or false",
       {{"type", Json::array({"number", "boolean", "string"})}, {"pattern", kSizePattern}}},
      {FieldKind::integers, "list of whole numbers", {{"type", "array"}, {"items", integer}}},
      {FieldKind::texts, "list of texts", {{"type", "array"}, {"items", {{"type", "string"}}}}},
      {FieldKind::batch_size,
       fmt::format("whole number, or {}", kAutoBatchSize),
       {{"oneOf", Json::array({integer, {{"const", kAutoBatchSize}}})}}},
      {FieldKind::model, "file or object", {{"type", Json::array({"string", "object"})}}},
      {FieldKind::any_list, "list", {{"type", "array"}}}};
  const auto form =
      std::find_if(forms.begin(), forms.end(), [kind](const KindForm& f) { return f.kind == kind; });
  if (form == forms.end()) throw InternalError("a kind of field without a name");
  return *form;
}

std::string value_name(const Field& field) {
  if (field.kind != FieldKind::choice) return form_of(field.kind).name;
  return fmt::format("{}{}", field.choices.size() > 1 ? "one of " : "", fmt::join(field.choices, ", "));
}

std::string range_text(const Field& field) {
  if (!field.is_bounded()) return "";
  if (field.kind == FieldKind::size) {
    return fmt::format("{} to {}", format_bytes(static_cast<Bytes>(field.low)),
                       format_bytes(static_cast<Bytes>(field.high)));
  }
  const auto number = [](double value) {
    return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.15g}", value);
  };
  return fmt::format("{} to {}", number(field.low), number(field.high));
}

}  // namespace

Json policy_schema(Json entry, const std::string& name, const std::string& summary,
                   const std::vector<Field>& options, const std::vector<PolicyProfile>& profiles) {
  Json& properties = entry["properties"];
  properties["use"] = {{"const", name}, {"description", summary}};
  properties.erase("profile");
  for (const PolicyProfile& profile : profiles) properties["profile"]["enum"].push_back(profile.name);
  for (const Field& option : options) {
    Json& schema = properties[option.key] = field_schema(option);
    if (!option.unit.empty()) schema["description"] = option.help + " [" + option.unit + "]";
  }
  entry["additionalProperties"] = false;
  return entry;
}

Json default_json(const Field& field) {
  if (!field.default_value) return {};
  if (field.kind == FieldKind::size) return default_text(field);
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_constructible_v<Json, decltype(value)>) return Json(value);
        return Json();
      },
      *field.default_value);
}

Json field_schema(const Field& field) {
  Json schema = form_of(field.kind).schema;
  if (field.kind == FieldKind::choice) schema["enum"] = field.choices;
  if (field.kind == FieldKind::object) schema = fields_schema(field.fields, field.open);
  if (field.kind == FieldKind::list) schema["items"] = fields_schema(field.fields, field.open);
  if ((field.kind == FieldKind::integer || field.kind == FieldKind::number) && field.is_bounded()) {
    schema["minimum"] = field.low;
    schema["maximum"] = field.high;
  }
  if (field.default_value) schema["default"] = default_json(field);
  schema["description"] = field.help;
  return schema;
}

Json fields_schema(const std::vector<Field>& fields, bool open) {
  Json schema;
  schema["type"] = "object";
  for (const Field& field : fields) {
    schema["properties"][field.key] = field_schema(field);
    if (field.required) schema["required"].push_back(field.key);
  }
  schema["additionalProperties"] = open;
  return schema;
}

std::vector<FieldRow> field_rows(const std::vector<Field>& fields, const std::string& way) {
  std::vector<FieldRow> rows;
  for (const Field& field : fields) {
    const std::string key = way + field.key;
    rows.push_back(
        {key, value_name(field), range_text(field), default_text(field), field.help, field.required});
    const auto inner = field_rows(field.fields, key + (field.kind == FieldKind::list ? "[]." : "."));
    rows.insert(rows.end(), inner.begin(), inner.end());
  }
  return rows;
}

Json scenario_schema(const PolicySet& known) {
  Json whole;
  whole["$schema"] = "http://json-schema.org/draft-07/schema#";
  whole["title"] = "A scenario of vramlab";
  for (const Kind& kind : kinds()) whole["oneOf"].push_back(kind.schema(known));
  return whole;
}

}  // namespace vramlab
