#include "lab/scenario/schema.hpp"

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

Json option_schema(const Field& option) {
  Json schema = field_schema(option);
  schema["description"] = option.help + (option.unit.empty() ? "" : " [" + option.unit + "]");
  return schema;
}

}  // namespace

Json policy_schema(Json entry, const std::string& name, const std::string& summary,
                   const std::vector<Field>& options, const std::vector<PolicyProfile>& profiles) {
  Json& properties = entry["properties"];
  properties["use"] = {{"const", name}, {"description", summary}};
  properties.erase("profile");
  for (const PolicyProfile& profile : profiles) properties["profile"]["enum"].push_back(profile.name);
  for (const Field& option : options) properties[option.key] = option_schema(option);
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
  Json schema;
  const auto set_range = [&] {
    if (!field.is_bounded()) return;
    schema["minimum"] = field.low;
    schema["maximum"] = field.high;
  };
  switch (field.kind) {
    case FieldKind::text:
      schema["type"] = "string";
      break;
    case FieldKind::boolean:
      schema["type"] = "boolean";
      break;
    case FieldKind::integer:
      schema["type"] = "integer";
      set_range();
      break;
    case FieldKind::number:
      schema["type"] = "number";
      set_range();
      break;
    case FieldKind::size:
      schema["type"] = Json::array({"string", "integer"});
      schema["pattern"] = kSizePattern;
      schema["minimum"] = 0;
      break;
    case FieldKind::bound:
      schema["type"] = Json::array({"number", "boolean", "string"});
      schema["pattern"] = kSizePattern;
      break;
    case FieldKind::choice:
      schema["enum"] = field.choices;
      break;
    case FieldKind::object:
      schema = fields_schema(field.fields, field.open);
      break;
    case FieldKind::list:
      schema["type"] = "array";
      schema["items"] = fields_schema(field.fields, field.open);
      break;
    case FieldKind::values:
      schema["type"] = "object";
      schema["additionalProperties"]["type"] = "integer";
      break;
    case FieldKind::bounds:
      schema["type"] = "object";
      schema["additionalProperties"] = {
          {"type", "array"}, {"items", {{"type", "integer"}}}, {"minItems", 2}, {"maxItems", 2}};
      break;
    case FieldKind::integers:
      schema["type"] = "array";
      schema["items"] = {{"type", "integer"}};
      break;
    case FieldKind::texts:
      schema["type"] = "array";
      schema["items"] = {{"type", "string"}};
      break;
    case FieldKind::batch_size:
      schema["oneOf"] = {{{"type", "integer"}}, {{"const", kAutoBatchSize}}};
      break;
    case FieldKind::model:
      schema["type"] = Json::array({"string", "object"});
      break;
    case FieldKind::any_list:
      schema["type"] = "array";
      break;
  }
  if (field.default_value) schema["default"] = default_json(field);
  schema["description"] = field.help;
  return schema;
}

Json fields_schema(const std::vector<Field>& fields, bool open) {
  Json schema;
  schema["type"] = "object";
  for (const Field& field : fields) schema["properties"][field.key] = field_schema(field);
  for (const Field& field : fields) {
    if (field.required) schema["required"].push_back(field.key);
  }
  schema["additionalProperties"] = open;
  return schema;
}

namespace {

std::string value_name(const Field& field) {
  switch (field.kind) {
    case FieldKind::text:
      return "text";
    case FieldKind::integer:
      return "whole number";
    case FieldKind::number:
      return "number";
    case FieldKind::boolean:
      return "true or false";
    case FieldKind::size:
      return "size";
    case FieldKind::choice:
      return fmt::format("{}{}", field.choices.size() > 1 ? "one of " : "", fmt::join(field.choices, ", "));
    case FieldKind::object:
      return "object";
    case FieldKind::list:
      return "list of objects";
    case FieldKind::values:
      return "a value for each parameter";
    case FieldKind::bounds:
      return "[low, high] for each parameter";
    case FieldKind::bound:
      return "number, size, true or false";
    case FieldKind::integers:
      return "list of whole numbers";
    case FieldKind::texts:
      return "list of texts";
    case FieldKind::batch_size:
      return fmt::format("whole number, or {}", kAutoBatchSize);
    case FieldKind::model:
      return "file or object";
    case FieldKind::any_list:
      return "list";
  }
  throw InternalError("a kind of field without a name");
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

void add_rows(const std::vector<Field>& fields, const std::string& way, std::vector<FieldRow>& rows) {
  for (const Field& field : fields) {
    const std::string key = way + field.key;
    rows.push_back(
        {key, value_name(field), range_text(field), default_text(field), field.help, field.required});
    add_rows(field.fields, key + (field.kind == FieldKind::list ? "[]." : "."), rows);
  }
}

}  // namespace

std::vector<FieldRow> field_rows(const std::vector<Field>& fields) {
  std::vector<FieldRow> rows;
  add_rows(fields, "", rows);
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
