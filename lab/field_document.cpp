#include "lab/field_document.hpp"

#include <cmath>

#include <fmt/format.h>

#include "sim/core/error.hpp"

namespace vramlab {
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
    rows.push_back({key, value_name(field), range_text(field), field.help, field.required});
    add_rows(field.fields, key + (field.kind == FieldKind::list ? "[]." : "."), rows);
  }
}

}  // namespace

std::vector<FieldRow> field_rows(const std::vector<Field>& fields) {
  std::vector<FieldRow> rows;
  add_rows(fields, "", rows);
  return rows;
}

}  // namespace vramlab
