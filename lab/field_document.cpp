#include "lab/field_document.hpp"

#include <fmt/format.h>

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
    case FieldKind::anything:
      break;
  }
  return "list";
}

std::string range_text(const Field& field) {
  if (field.low > field.high || field.high == 0) return "";
  if (field.kind == FieldKind::size) {
    return fmt::format("{} to {}", format_bytes(static_cast<Bytes>(field.low)),
                       format_bytes(static_cast<Bytes>(field.high)));
  }
  return fmt::format("{:.15g} to {:.15g}", field.low, field.high);
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
