#include "lab/kinds/training/spec_fields.hpp"

#include "lab/kinds/jobs/spec.hpp"
#include "models/job_estimate.hpp"

namespace vramlab {
namespace {

using Kind = FieldKind;

constexpr double kLargest = 1099511627776.0;  // 1 TiB, above any card there is
constexpr double kLongest = 1e9;              // seconds, some 30 years

Field seconds_field(std::string key, std::string help, bool required = false) {
  return {.key = std::move(key),
          .kind = Kind::number,
          .help = std::move(help),
          .required = required,
          .low = 0,
          .high = kLongest};
}

Field size_field(std::string key, std::string help, bool required = false) {
  return {.key = std::move(key),
          .kind = Kind::size,
          .help = std::move(help),
          .required = required,
          .low = 0,
          .high = kLargest};
}

Field integer_field(std::string key, std::string help, double low, double high) {
  return {.key = std::move(key), .kind = Kind::integer, .help = std::move(help), .low = low, .high = high};
}

// Above 1: work that would keep several cards busy.
Field busy_field(const std::string& help) {
  return {.key = "busy", .kind = Kind::number, .help = "share " + help, .low = 0, .high = 16};
}

Field at_field() {
  return {.key = "at", .kind = Kind::values, .help = "parameters of the model but its batch"};
}

std::vector<Field> card_fields() {
  return {
      {.key = "gpu", .kind = Kind::text, .help = "a card of `vramlab gpus` (or give `total`)"},
      size_field("total", "each card's memory, where `gpu` names none"),
      integer_field("count", "how many (default 1)", 1, 100000),
      integer_field("per_node", "cards of one machine (default: all of them); a job's cards are of one", 1,
                    1024),
      size_field("reserve", "what the driver keeps of each card (default 0; contexts count with the jobs)"),
      size_field("context", "of one process, fidelity `steps` (default: the card's, else 527 MiB, assumed)"),
  };
}

std::vector<Field> stranger_fields() {
  return {
      {.key = "card",
       .kind = Kind::integer,
       .help = "number of the card, from 0",
       .required = true,
       .low = 0,
       .high = 1e6},
      seconds_field("from_s", "when it takes the memory, in seconds (default 0)"),
      seconds_field("to_s", "when it gives it back (default: never)"),
      size_field("bytes", "how much; what is not free it gets later", true),
      busy_field("of the card's time it takes, fidelity `steps` (default 0)"),
  };
}

std::vector<Field> estimate_fields() {
  return {
      {.key = "type",
       .kind = Kind::choice,
       .help = "row of the table",
       .required = true,
       .choices = estimate_types()},
      {.key = "size",
       .kind = Kind::choice,
       .help = "its size (default medium)",
       .choices = {"small", "medium", "large", "xlarge"}},
      integer_field("sequence", "tokens, for transformers (default 512)", 1, 1e7),
      {.key = "training", .kind = Kind::boolean, .help = "gradients and optimizer state too (default true)"},
  };
}

std::vector<Field> job_phase_fields() {
  return {
      seconds_field("duration_s", "how long it lasts, alone on a card"),
      integer_field("steps", "in place of it where the job has a model", 1, 1e9),
      {.key = "set", .kind = Kind::values, .help = "parameters of its steps (default: those of `at`)"},
      size_field("use", "memory really used on each card (default: what is promised)"),
      size_field("use_per_sample", "and for each sample of the batch it runs at (default 0)"),
      size_field("need", "memory asked for where a policy admits by phase (default: the job's)"),
  };
}

std::vector<Field> job_fields() {
  return {
      {.key = "name", .kind = Kind::text, .help = "what it is called"},
      integer_field("count", "so many jobs of this make (default 1)", 1, 1e6),
      seconds_field("arrival_s", "when it is submitted (default 0)"),
      seconds_field("every_s", "time between the arrivals of `count` jobs (default 0)"),
      {.key = "model",
       .kind = Kind::model,
       .help = "what it runs: a model file, or a model in place; without a need it declares what that takes"},
      at_field(),
      integer_field("steps", "how many steps of the model (or give `phases`)", 1, 1e9),
      busy_field("of a card's time that its steps take, fidelity `steps` (default 1)"),
      size_field("need", "declared memory on each card, batch aside"),
      size_field("per_sample", "declared memory for each sample of the batch (default 0)"),
      {.key = "share",
       .kind = Kind::number,
       .help = "instead of bytes: share of whichever card",
       .low = 0.001,
       .high = 1},
      {.key = "estimate",
       .kind = Kind::object,
       .help = "instead of bytes: the table estimate",
       .fields = estimate_fields()},
      integer_field("batch", "samples at once (default 1)", 1, 1e6),
      size_field("use", "memory really used on each card, batch aside (default: what is promised)"),
      size_field("use_per_sample", "and for each sample of the batch it runs at (default 0)"),
      integer_field("cards", "cards of one node (default 1)", 1, 1024),
      integer_field("priority", "higher goes first (default 0)", -1000, 1000),
      {.key = "quota", .kind = Kind::text, .help = "name of the quota it counts against"},
      seconds_field("duration_s", "how long it runs (or give `phases`)"),
      seconds_field("expected_s", "how long it says it runs (default: as long as it does)"),
      seconds_field("crash_after_s", "running time after which its owner dies and tells nobody"),
      {.key = "phases",
       .kind = Kind::list,
       .help = "stretches with memory of their own",
       .fields = job_phase_fields()},
  };
}

std::vector<Field> mix_fields() {
  return {
      {.key = "name", .kind = Kind::text, .help = "what this sort of job is called", .required = true},
      integer_field("weight", "how often, compared with the others (default 1)", 1, 1e6),
      size_field("need_low", "smallest need on each card (or give `model`)"),
      size_field("need_high", "largest need"),
      {.key = "model", .kind = Kind::model, .help = "what jobs of this sort run, for as many steps as fit"},
      at_field(),
      busy_field("of a card's time that they take, fidelity `steps` (default 1)"),
      seconds_field("shortest_s", "shortest duration", true),
      seconds_field("longest_s", "longest duration; drawn evenly by octaves", true),
      integer_field("cards", "cards of one node (default 1)", 1, 1024),
      integer_field("priority", "higher goes first (default 0)", -1000, 1000),
      integer_field("batch", "samples at once: all but a fifth of the need is theirs (default 1)", 1, 1e6),
  };
}

std::vector<Field> generate_fields() {
  return {
      {.key = "jobs", .kind = Kind::integer, .help = "how many", .required = true, .low = 1, .high = 1e6},
      {.key = "hours",
       .kind = Kind::number,
       .help = "they arrive within",
       .required = true,
       .low = 0.001,
       .high = 1e5},
      {.key = "mix", .kind = Kind::list, .help = "sorts of jobs", .required = true, .fields = mix_fields()},
  };
}

std::vector<Field> job_trace_fields() {
  return {
      {.key = "jobs", .kind = Kind::text, .help = "a list of jobs, CSV or JSON (docs/job-queue.md)"},
      {.key = "pods", .kind = Kind::text, .help = "an openb list of pods; `nodes` goes with it"},
      {.key = "nodes", .kind = Kind::text, .help = "an openb list of nodes, in place of `cards`"},
      size_field("anonymous_card",
                 "memory of the cards G2 and G3, which the list does not say (default 32GiB)"),
      {.key = "gavel", .kind = Kind::text, .help = "a trace of Gavel; `throughputs` goes with it"},
      {.key = "throughputs", .kind = Kind::text, .help = "Gavel's measured steps per second"},
      {.key = "gpu", .kind = Kind::text, .help = "on which of its kinds of cards (default v100)"},
      {.key = "share",
       .kind = Kind::number,
       .help = "of each card that a job of Gavel takes, which its trace does not say (default 1)",
       .low = 0.001,
       .high = 1},
  };
}

}  // namespace

std::vector<Field> jobs_fields() {
  Field expect = metric_expectations_field();
  expect.fields.push_back(share_field());
  return {
      shared_field("$schema"),
      shared_field("version"),
      kind_field("jobs"),
      shared_field("name"),
      shared_field("description"),
      shared_field("seed"),
      seeds_field(),
      {.key = "fidelity",
       .kind = Kind::choice,
       .help = "declared: jobs are needs and durations (default); steps: each has an allocator of its own",
       .choices = {"declared", "steps"}},
      shared_field("allocator"),
      {.key = "cards", .kind = Kind::list, .help = "the cards to share", .fields = card_fields()},
      {.key = "strangers",
       .kind = Kind::list,
       .help = "processes on them that the queue does not know",
       .fields = stranger_fields()},
      seconds_field("start_up_s", "from a job's admission until it takes its memory (default 0)"),
      {.key = "quotas",
       .kind = Kind::list,
       .help = "limits on the sum of promises",
       .fields = {{.key = "name", .kind = Kind::text, .help = "what jobs call it", .required = true},
                  size_field("bytes", "over all cards at once", true)}},
      {.key = "jobs", .kind = Kind::list, .help = "the jobs, one by one", .fields = job_fields()},
      {.key = "generate",
       .kind = Kind::object,
       .help = "further jobs, drawn with the seed",
       .fields = generate_fields()},
      {.key = "trace",
       .kind = Kind::object,
       .help = "further jobs, from a file",
       .fields = job_trace_fields()},
      {.key = "estimate_error",
       .kind = Kind::number,
       .help = "real use is the need times 1 ± this, drawn for each job; with a model, the need is the real "
               "use times that (default 0)",
       .low = 0,
       .high = 0.999},
      shared_field("plugins"),
      policies_field(),
      expect,
      shared_field("sweep"),
  };
}

std::vector<Field> job_list_fields() {
  return {{.key = "jobs", .kind = Kind::list, .help = "the jobs", .required = true, .fields = job_fields()}};
}

Json jobs_schema(const PolicySet& known) {
  Json schema = fields_schema(jobs_fields(), /*open=*/false);
  Json& entry = schema["properties"]["policies"]["items"];
  entry = admitter_schemas(Json(entry), known);
  return schema;
}

}  // namespace vramlab
