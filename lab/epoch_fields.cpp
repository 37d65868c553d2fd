#include <algorithm>

#include "lab/epoch_scenario.hpp"
#include "lab/scenario_fields.hpp"

namespace vramlab {
namespace {

using Kind = FieldKind;

constexpr double kMostTokens = 1e7;
constexpr double kMostSamples = 1e7;
constexpr double kLargest = 1099511627776.0;  // 1 TiB, above any card there is

Field integer_field(std::string key, std::string help, double low, double high, bool required = false) {
  return {.key = std::move(key),
          .kind = Kind::integer,
          .help = std::move(help),
          .required = required,
          .low = low,
          .high = high};
}

std::vector<Field> task_fields() {
  return {
      {.key = "name", .kind = Kind::text, .help = "what the model calls it", .required = true},
      integer_field("share", "how often, compared with the others (default 1)", 1, 1e6),
      integer_field("images", "of each sample (default 0)", 0, 1000),
      integer_field("shortest", "tokens of text, at least", 1, kMostTokens, true),
      integer_field("longest", "tokens of text, at most; drawn evenly", 1, kMostTokens, true),
      {.key = "weight", .kind = Kind::number, .help = "of its loss (default 1)", .low = 0.001, .high = 1000},
  };
}

std::vector<Field> data_fields() {
  return {
      {.key = "tasks", .kind = Kind::list, .help = "tasks to draw samples of", .fields = task_fields()},
      integer_field("samples", "how many; with `lengths` at most so many of its lines", 1, kMostSamples),
      integer_field("outliers_every", "one sample in so many is far longer (default: none)", 1, kMostSamples),
      integer_field("outliers_times", "its text has so many times the tokens (default 100)", 1, 10000),
      {.key = "lengths",
       .kind = Kind::text,
       .help = "instead of tasks: a CSV file of lengths, looked up as models are"},
      {.key = "column", .kind = Kind::text, .help = "of that file (default tokens)"},
      integer_field("most", "longer ones are cut to so many tokens (default: no limit)", 1, kMostTokens),
  };
}

std::vector<Field> sizes_fields() {
  return {
      {.key = "resident", .kind = Kind::size, .help = "weights", .low = 0, .high = kLargest},
      {.key = "samples",
       .kind = Kind::list,
       .help = "what a sample takes, by its images",
       .fields = {integer_field("images", "so many", 0, 64, true),
                  {.key = "bytes",
                   .kind = Kind::size,
                   .help = "and this much; more images than listed count as the last",
                   .required = true,
                   .low = 0,
                   .high = kLargest}}},
      {.key = "per_token",
       .kind = Kind::size,
       .help = "of a padded row, for each position (default 0)",
       .low = 0,
       .high = 1073741824.0},
      {.key = "floor_ms",
       .kind = Kind::number,
       .help = "a step takes at least (default 50)",
       .low = 0,
       .high = 1e6},
      {.key = "ms_per_sample",
       .kind = Kind::number,
       .help = "and so long for each sample (default 0)",
       .low = 0,
       .high = 1e6},
  };
}

std::vector<Field> series_fields() {
  return {
      {.key = "file",
       .kind = Kind::text,
       .help = "CSV with the columns task, loss, gradient_norm",
       .required = true},
      {.key = "origin",
       .kind = Kind::choice,
       .help = "where its figures come from",
       .required = true,
       .choices = {"synthetic", "measured"}},
  };
}

std::vector<Field> workload_fields() {
  return {
      {.key = "model", .kind = Kind::text, .help = "a recorded model's file (or give `sizes`)"},
      {.key = "checkpointed",
       .kind = Kind::text,
       .help = "the same workload recorded with activation checkpointing"},
      {.key = "sizes",
       .kind = Kind::object,
       .help = "instead of a model: a table of what samples take",
       .fields = sizes_fields()},
      {.key = "data",
       .kind = Kind::object,
       .help = "the data set",
       .required = true,
       .fields = data_fields()},
      integer_field("target_batch", "samples of an effective batch (default 32)", 1, 1e6),
      integer_field("epochs", "times through the data (default 1)", 1, 1e4),
      integer_field(
          "restart_every",
          "batches after which the process ends and a new one goes on from the saved state (default: "
          "never)",
          1, 1e9),
      {.key = "shuffle", .kind = Kind::boolean, .help = "each epoch in a new order (default true)"},
      {.key = "collator",
       .kind = Kind::choice,
       .help = "rows are padded to the longest, or hold several samples (default pad)",
       .choices = {"pad", "pack"}},
      {.key = "series",
       .kind = Kind::object,
       .help = "losses and gradient norms, which no simulation knows",
       .fields = series_fields()},
      {.key = "balance_losses",
       .kind = Kind::boolean,
       .help = "weigh tasks by their gradient norms (default false)"},
      {.key = "balance_alpha",
       .kind = Kind::number,
       .help = "its exponent (default 1.5)",
       .low = 0,
       .high = 10},
      {.key = "scale_gradient",
       .kind = Kind::boolean,
       .help = "the original's gradient times target over effective batch (default false)"},
      {.key = "scale_learning_rate",
       .kind = Kind::boolean,
       .help = "the original's learning rate times sqrt(effective batch over target) (default false)"},
  };
}

}  // namespace

std::vector<Field> epoch_fields() {
  return {
      shared_field("$schema"),
      shared_field("version"),
      kind_field("epoch"),
      shared_field("name"),
      shared_field("description"),
      shared_field("seed"),
      shared_field("device"),
      shared_field("allocator"),
      {.key = "workload",
       .kind = Kind::object,
       .help = "what is trained on what",
       .required = true,
       .fields = workload_fields()},
      shared_field("plugins"),
      policies_field(),
      metric_expectations_field(),
      shared_field("sweep"),
  };
}

Json epoch_schema(const PolicySet& known) {
  Json schema = fields_schema(epoch_fields(), /*open=*/false);
  Json& entry = schema["properties"]["policies"]["items"];
  entry = composer_schemas(Json(entry), known);
  return schema;
}

}  // namespace vramlab
