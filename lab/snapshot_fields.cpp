#include "lab/scenario_fields.hpp"
#include "lab/snapshot_scenario.hpp"

namespace vramlab {
namespace {

using Kind = FieldKind;

// A card that may be left out: then it is the recording's own, or one that is never full.
std::vector<Field> card_fields() {
  std::vector<Field> fields = shared_field("device").fields;
  std::erase_if(fields, [](const Field& field) { return field.key == "others"; });
  return fields;
}

std::vector<Field> row_fields() {
  std::vector<Field> fields{
      {.key = "label", .kind = Kind::text, .help = "what expectations call it", .required = true},
      {.key = "conf",
       .kind = Kind::text,
       .help = "the string of PYTORCH_CUDA_ALLOC_CONF (default: that of `allocator`)"}};
  for (Field& field : card_fields()) fields.push_back(std::move(field));
  return fields;
}

std::vector<Field> row_expectation_fields() {
  std::vector<Field> fields{
      {.key = "row", .kind = Kind::text, .help = "the label of a row", .required = true},
      {.key = "metric",
       .kind = Kind::text,
       .help = "a figure of `vramlab metrics snapshot`",
       .required = true},
      {.key = "mark", .kind = Kind::text, .help = "the mark at which (default: at the end)"}};
  for (Field& field : bound_fields()) fields.push_back(std::move(field));
  return fields;
}

}  // namespace

std::vector<Field> snapshot_fields() {
  Field device = shared_field("device");
  device.help = "the card of rows that name none (default: as recorded; for a script one that is never full)";
  device.required = false;
  device.fields = card_fields();
  Field allocator = shared_field("allocator");
  std::erase_if(allocator.fields, [](const Field& field) { return field.key != "conf"; });
  return {
      shared_field("$schema"),
      shared_field("version"),
      kind_field("snapshot"),
      shared_field("name"),
      shared_field("description"),
      device,
      allocator,
      {.key = "workload",
       .kind = Kind::object,
       .help = "what is replayed",
       .required = true,
       .fields = {{.key = "snapshot",
                   .kind = Kind::text,
                   .help = "a memory snapshot (.pickle) or an allocation script (.csv), also .gz or .zst",
                   .required = true}}},
      {.key = "rows",
       .kind = Kind::list,
       .help = "the settings and cards it is replayed under",
       .required = true,
       .fields = row_fields()},
      {.key = "expect",
       .kind = Kind::list,
       .help = "what `vramlab check` holds the rows against",
       .fields = row_expectation_fields()},
  };
}

Json snapshot_schema(const PolicySet& /*known*/) { return fields_schema(snapshot_fields(), /*open=*/false); }

}  // namespace vramlab
