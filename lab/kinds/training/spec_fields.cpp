#include "lab/kinds/training/spec_fields.hpp"

#include <stdexcept>
#include <string>

#include "lab/kinds/training/fault_fields.hpp"
#include "lab/scenario/sweep.hpp"

namespace vramlab {
namespace {

using Kind = FieldKind;

constexpr double kLargestCard = 1099511627776.0;  // 1 TiB, above any card there is
constexpr double kLongestRun = 1e6;               // iterations; the record of every one is kept
constexpr double kLongestTime = 1e9;              // seconds, some 30 years

std::vector<Field> other_process_fields() {
  return {
      {.key = "from_s",
       .kind = Kind::number,
       .help = "when it takes the memory, in seconds from the start (default 0)",
       .low = 0,
       .high = kLongestTime},
      {.key = "to_s",
       .kind = Kind::number,
       .help = "when it gives it back, in seconds (default: never)",
       .low = 0,
       .high = kLongestTime},
      {.key = "bytes",
       .kind = Kind::size,
       .help = "how much it holds",
       .required = true,
       .low = 0,
       .high = kLargestCard},
  };
}

std::vector<Field> device_fields() {
  return {
      {.key = "gpu", .kind = Kind::text, .help = "a card of `vramlab gpus` (or give `profile` or `total`)"},
      {.key = "profile",
       .kind = Kind::text,
       .help = "a file that `vramlab validate-device --profile` wrote, looked up as a model is"},
      {.key = "total",
       .kind = Kind::size,
       .help = "the card's memory, where `gpu` names none",
       .low = 1,
       .high = kLargestCard},
      {.key = "context",
       .kind = Kind::size,
       .help = "what a bare context takes of it (default: the card's, else 527 MiB, assumed)",
       .low = 0,
       .high = kLargestCard},
      {.key = "limit",
       .kind = Kind::size,
       .help = "what the allocator may reserve, as set by a memory fraction (default: no limit)",
       .low = 1,
       .high = kLargestCard},
      {.key = "others",
       .kind = Kind::list,
       .help = "processes that hold memory of the card for some time",
       .fields = other_process_fields()},
  };
}

std::vector<Field> phase_fields() {
  return {
      {.key = "name", .kind = Kind::text, .help = "what it is called", .required = true},
      {.key = "every",
       .kind = Kind::integer,
       .help = "it runs after every so many iterations",
       .required = true,
       .low = 1,
       .high = kLongestRun},
      {.key = "set", .kind = Kind::values, .help = "parameters of its step (default: those of `start`)"},
  };
}

std::vector<Field> workload_fields() {
  return {
      {.key = "model",
       .kind = Kind::model,
       .help =
           "a model file, looked up beside the scenario, here and in the data folder; or a model in place",
       .required = true},
      {.key = "layers",
       .kind = Kind::integers,
       .help = "how many of the model's layers lie on each card, such as [2, 10]"},
      {.key = "batch_size",
       .kind = Kind::batch_size,
       .help = "the batch of the first step, in place of start's; auto_batch_size: `searcher` finds it"},
      {.key = "searcher",
       .kind = Kind::object,
       .help = "the searcher of auto_batch_size (default model); further keys are its options",
       .fields =
           {{.key = "use", .kind = Kind::text, .help = "a searcher of `vramlab policies`", .required = true},
            {.key = "profile", .kind = Kind::text, .help = "a named set of its options"}},
       .open = true},
      {.key = "iterations",
       .kind = Kind::integer,
       .help = "steps to run",
       .required = true,
       .low = 1,
       .high = kLongestRun},
      {.key = "start", .kind = Kind::values, .help = "parameters of the first step", .required = true},
      {.key = "bounds",
       .kind = Kind::bounds,
       .help = "where the parameters may lie (default: the model's range)"},
      {.key = "phases",
       .kind = Kind::list,
       .help = "further steps at parameters of their own, such as validation",
       .fields = phase_fields()},
  };
}

std::vector<Field> policy_fields() {
  return {
      {.key = "use", .kind = Kind::text, .help = "a policy of `vramlab policies`", .required = true},
      {.key = "profile",
       .kind = Kind::text,
       .help = "a named set of its options (default: the policy's own)"},
      {.key = "label", .kind = Kind::text, .help = "its name in tables (default: policy and profile)"},
      {.key = "options_file",
       .kind = Kind::text,
       .help = "a YAML file with training options of the dual optimizer, looked up beside the scenario"},
      {.key = "cards",
       .kind = Kind::choice,
       .help = "several cards: it sees the fullest, or all summed up as the original did (default fullest)",
       .choices = {"fullest", "sum"}},
  };
}

std::vector<Field> expectation_fields() {
  std::vector<Field> fields{
      {.key = "policy", .kind = Kind::text, .help = "the label of a policy, or oracle", .required = true},
      {.key = "metric",
       .kind = Kind::text,
       .help = "a metric of the results (or give `final`, `adjustment` or `oom`)"},
      {.key = "final", .kind = Kind::text, .help = "a parameter, as it stands after the last step"},
      {.key = "adjustment",
       .kind = Kind::integer,
       .help = "number of a change, from 1: the iteration after which it was made",
       .low = 1,
       .high = kLongestRun},
      {.key = "parameter",
       .kind = Kind::text,
       .help = "with `adjustment`: the value of this parameter after it instead"},
      {.key = "oom",
       .kind = Kind::integer,
       .help = "number of a failed step, from 1: its iteration",
       .low = 1,
       .high = kLongestRun},
  };
  for (Field& field : bound_fields()) fields.push_back(std::move(field));
  return fields;
}

std::vector<Field> target_fields() {
  return {
      {.key = "usage",
       .kind = Kind::number,
       .help = "share of the total to aim at (default 0.85)",
       .low = 0.01,
       .high = 1},
      {.key = "margin",
       .kind = Kind::number,
       .help = "half the width of the band around it (default 0.05)",
       .low = 0.001,
       .high = 0.5},
  };
}

}  // namespace

std::vector<Field> bound_fields() {
  return {
      {.key = "min", .kind = Kind::bound, .help = "the value must not be below it"},
      {.key = "max", .kind = Kind::bound, .help = "the value must not be above it"},
      {.key = "equals", .kind = Kind::bound, .help = "the value must be this"},
      {.key = "tolerance",
       .kind = Kind::number,
       .help = "how far from `equals` it may be (default 0)",
       .low = 0,
       .high = 1e18},
      {.key = "relative_to",
       .kind = Kind::text,
       .help = "label of another run: the value is divided by the same figure of that one"},
  };
}

Field share_field() {
  return {.key = "share",
          .kind = Kind::number,
          .help = "with `seeds`: share of the runs in which it must hold (default 1)",
          .low = 0.001,
          .high = 1};
}

Field seeds_field() {
  return {.key = "seeds",
          .kind = Kind::integer,
          .help = "`check` runs so many seeds, from `seed` on (default 1)",
          .low = 1,
          .high = 1000};
}

std::vector<Field> scenario_fields() {
  return {
      {.key = "$schema", .kind = Kind::text, .help = "for editors: where the schema of this file lies"},
      {.key = "version",
       .kind = Kind::integer,
       .help = "version of this format, 1",
       .required = true,
       .low = 1,
       .high = 1},
      {.key = "kind",
       .kind = Kind::choice,
       .help = "what is simulated: training, jobs (docs/job-queue.md), epoch (docs/mixed-tasks.md), search "
               "(docs/batch-size-finder.md), or snapshot, a recorded program",
       .required = true,
       .choices = {"training"}},
      {.key = "name", .kind = Kind::text, .help = "a short name", .required = true},
      {.key = "description", .kind = Kind::text, .help = "what the scenario shows"},
      {.key = "seed",
       .kind = Kind::integer,
       .help = "seed of everything random (default 1)",
       .low = 0,
       .high = 9007199254740991.0},
      {.key = "objective",
       .kind = Kind::choice,
       .help = "what counts as work done (default lq-then-batch)",
       .choices = {"lq-then-batch", "pixels_per_s", "samples_per_s"}},
      {.key = "target",
       .kind = Kind::object,
       .help = "usage to aim at: policies that set none of their own take it, the oracle too",
       .fields = target_fields()},
      {.key = "device",
       .kind = Kind::object,
       .help = "the card",
       .required = true,
       .fields = device_fields()},
      {.key = "more_devices",
       .kind = Kind::list,
       .help = "further cards of the same workload: parts of its layers, or a whole copy on each",
       .fields = device_fields()},
      {.key = "allocator",
       .kind = Kind::object,
       .help = "settings of the caching allocator",
       .fields = {{.key = "conf",
                   .kind = Kind::text,
                   .help = "the string of PYTORCH_CUDA_ALLOC_CONF (default: empty)"},
                  {.key = "torch_version",
                   .kind = Kind::text,
                   .help = "whose allocator it is, from 2.1 on (default: 2.11)"}}},
      {.key = "workload",
       .kind = Kind::object,
       .help = "what is trained",
       .required = true,
       .fields = workload_fields()},
      {.key = "faults",
       .kind = Kind::object,
       .help = "what goes wrong in every run (default: nothing)",
       .fields = fault_fields()},
      {.key = "plugins",
       .kind = Kind::texts,
       .help = "shared libraries with further policies, looked up beside the scenario (docs/plugins.md)"},
      {.key = "policies",
       .kind = Kind::list,
       .help = "what is compared; further keys are options of the policy",
       .required = true,
       .fields = policy_fields(),
       .open = true},
      {.key = "expect",
       .kind = Kind::list,
       .help = "what `vramlab check` holds the runs against",
       .fields = expectation_fields()},
      {.key = "sweep",
       .kind = Kind::list,
       .help = "keys to vary: `vramlab compare` runs every combination; `check` and `run` leave it aside",
       .fields = sweep_fields()},
  };
}

Field shared_field(std::string_view key) {
  for (Field& field : scenario_fields()) {
    if (field.key == key) return field;
  }
  throw std::out_of_range("a scenario of kind training has no such field");
}

Field kind_field(std::string_view name) {
  Field kind = shared_field("kind");
  kind.choices = {std::string{name}};
  return kind;
}

Field policies_field() {
  Field policies = shared_field("policies");
  std::erase_if(policies.fields,
                [](const Field& field) { return field.key == "options_file" || field.key == "cards"; });
  return policies;
}

Field metric_expectations_field() {
  Field expect = shared_field("expect");
  std::erase_if(expect.fields, [](const Field& field) {
    return field.key == "final" || field.key == "adjustment" || field.key == "parameter" ||
           field.key == "oom";
  });
  for (Field& field : expect.fields) {
    if (field.key == "metric")
      field = {.key = "metric", .kind = Kind::text, .help = "a metric of the results", .required = true};
    if (field.key == "policy") field.help = "the label of a policy";
  }
  return expect;
}

}  // namespace vramlab
