#include "lab/scenario_fields.hpp"
#include "lab/search_scenario.hpp"

namespace vramlab {
namespace {

using Kind = FieldKind;

constexpr double kMostSteps = 1e6;

std::vector<Field> search_phase_fields() {
  return {
      {.key = "name", .kind = Kind::text, .help = "what it is called", .required = true},
      {.key = "set", .kind = Kind::values, .help = "parameters of its steps (default: those of `start`)"},
      {.key = "model", .kind = Kind::model, .help = "a model of its own, in a process of its own"},
  };
}

std::vector<Field> bucket_fields() {
  return {
      {.key = "parameter", .kind = Kind::text, .help = "the length, by its name", .required = true},
      {.key = "up_to",
       .kind = Kind::integers,
       .help = "the largest length of each bucket, rising; each is searched at it",
       .required = true},
  };
}

std::vector<Field> other_failure_fields() {
  return {
      {.key = "from", .kind = Kind::integer, .help = "the batch", .required = true, .low = 1, .high = 1e9},
      {.key = "message", .kind = Kind::text, .help = "what it says", .required = true},
  };
}

std::vector<Field> search_workload_fields(const std::vector<Field>& training) {
  std::vector<Field> fields;
  for (const Field& field : training) {
    const bool shared =
        field.key == "model" || field.key == "layers" || field.key == "start" || field.key == "bounds";
    if (shared) fields.push_back(field);
  }
  for (Field& field : fields) {
    if (field.key == "start") field.help = "the other parameters (the batch is searched)";
    if (field.key == "start") field.required = false;
  }
  fields.push_back(
      {.key = "batch", .kind = Kind::text, .help = "name of the parameter searched (default batch)"});
  fields.push_back({.key = "max_batch",
                    .kind = Kind::integer,
                    .help = "a cap that is not memory, such as a launch limit (default: none)",
                    .low = 1,
                    .high = 1e9});
  fields.push_back({.key = "dataset",
                    .kind = Kind::integer,
                    .help = "samples there are; no batch is larger (default: any number)",
                    .low = 1,
                    .high = 1e12});
  fields.push_back({.key = "phases",
                    .kind = Kind::list,
                    .help = "what a batch must fit (default: one, `training`); the first is of `model`",
                    .fields = search_phase_fields()});
  fields.push_back({.key = "buckets",
                    .kind = Kind::object,
                    .help = "a batch for each bucket of lengths (default: one batch)",
                    .fields = bucket_fields()});
  fields.push_back({.key = "failed_tensors",
                    .kind = Kind::choice,
                    .help = "when the tensors of a step that ran out of memory go (default freed: at once)",
                    .choices = {"freed", "until-clean-up", "never"}});
  fields.push_back({.key = "other_failure",
                    .kind = Kind::object,
                    .help = "from some batch on steps fail with a message",
                    .fields = other_failure_fields()});
  return fields;
}

std::vector<Field> then_epoch_fields() {
  return {
      {.key = "iterations",
       .kind = Kind::integer,
       .help = "steps",
       .required = true,
       .low = 1,
       .high = kMostSteps},
      {.key = "phases_every",
       .kind = Kind::integer,
       .help = "the further phases run after so many steps (default: never)",
       .low = 1,
       .high = kMostSteps},
      {.key = "draw",
       .kind = Kind::bounds,
       .help = "parameters drawn anew for each step, evenly within [smallest, largest]"},
  };
}

}  // namespace

std::vector<Field> search_fields() {
  Field workload = shared_field("workload");
  workload.fields = search_workload_fields(workload.fields);
  workload.help = "what is searched";
  Field policies = policies_field();
  policies.required = false;
  policies.help = "searchers to compare (default: model); further keys are options of the searcher";
  return {
      shared_field("$schema"),
      shared_field("version"),
      kind_field("search"),
      shared_field("name"),
      shared_field("description"),
      shared_field("seed"),
      shared_field("device"),
      shared_field("more_devices"),
      shared_field("allocator"),
      workload,
      {.key = "then_epoch",
       .kind = Kind::object,
       .help = "steps at what was found, in a fresh process",
       .fields = then_epoch_fields()},
      shared_field("plugins"),
      policies,
      metric_expectations_field(),
      shared_field("sweep"),
  };
}

Json search_schema(const PolicySet& known) {
  Json schema = fields_schema(search_fields(), /*open=*/false);
  Json& entry = schema["properties"]["policies"]["items"];
  entry = searcher_schemas(Json(entry), known);
  return schema;
}

}  // namespace vramlab
