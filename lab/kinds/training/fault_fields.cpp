#include "lab/kinds/training/fault_fields.hpp"

#include <utility>

namespace vramlab {
namespace {

using Kind = FieldKind;

constexpr double kLargestCard = 1099511627776.0;  // 1 TiB, above any card there is
constexpr double kLongestRun = 1e6;               // iterations
constexpr double kLongestTime = 1e9;              // seconds
constexpr double kLongestQueue = 1000;            // steps; no loader fetches further ahead

Field size(const char* key, const char* help) {
  return {.key = key, .kind = Kind::size, .help = help, .required = true, .low = 0, .high = kLargestCard};
}

Field chance(const char* key, const char* help, bool required) {
  return {.key = key, .kind = Kind::number, .help = help, .required = required, .low = 0, .high = 1};
}

Field count(const char* key, const char* help, double low, double high, bool required = false) {
  return {.key = key, .kind = Kind::integer, .help = help, .required = required, .low = low, .high = high};
}

Field object(const char* key, const char* help, std::vector<Field> fields) {
  return {.key = key, .kind = Kind::object, .help = help, .fields = std::move(fields)};
}

}  // namespace

std::vector<Field> fault_fields() {
  return {
      object("leak", "memory that is never given back",
             {size("bytes_per_step", "what every step leaves behind"),
              count("from", "first iteration that leaks (default 1)", 1, kLongestRun),
              count("to", "last iteration that leaks (default: the last of the run)", 1, kLongestRun)}),
      object("search", "the first step at parameters new to the process needs more",
             {size("bytes", "how much more, from its begin to its end")}),
      object("optimizer_state", "the first step of a process makes state that stays",
             {size("bytes", "how much")}),
      object("outliers", "some steps have a sample that needs more",
             {size("bytes", "how much more, from the step's begin to its end"),
              chance("chance", "of a step to have one", true)}),
      object("errors", "some steps end in a CUDA error that is not OOM, and their work is lost",
             {chance("chance", "of a step to end so", true)}),
      count("apply_delay", "steps that still run at the old parameters after a change (default 0)", 0,
            kLongestQueue),
      object("readings", "what the policy sees of memory",
             {count("delay", "steps by which a reading is late (default 0)", 0, kLongestQueue),
              chance("missing", "chance of a reading to be missing; the last one stays (default 0)", false)}),
      object("restart", "the process dies once and goes on from its checkpoint",
             {count("after", "the iteration it dies after", 1, kLongestRun, true),
              count("checkpoint_every", "iterations between checkpoints (default 1)", 1, kLongestRun),
              {.key = "takes_s",
               .kind = Kind::number,
               .help = "seconds until the next step begins (default 0)",
               .low = 0,
               .high = kLongestTime}}),
  };
}

Faults read_faults(const Json& json, std::uint64_t seed, FileProblems& problems) {
  Faults faults{.seed = seed};
  if (json.contains("leak")) {
    const Json& leak = json["leak"];
    faults.leak.per_step = size_value(leak["bytes_per_step"]);
    faults.leak.from = leak.value("from", faults.leak.from);
    faults.leak.to = leak.value("to", faults.leak.to);
    if (faults.leak.to < faults.leak.from) problems.add("/faults/leak", "\"to\" is before \"from\".");
  }
  if (json.contains("search")) faults.search = size_value(json["search"]["bytes"]);
  if (json.contains("optimizer_state")) {
    faults.optimizer_state = size_value(json["optimizer_state"]["bytes"]);
  }
  if (json.contains("outliers")) {
    faults.outlier = size_value(json["outliers"]["bytes"]);
    faults.outlier_chance = json["outliers"]["chance"].get<double>();
  }
  if (json.contains("errors")) faults.error_chance = json["errors"]["chance"].get<double>();
  faults.apply_delay = json.value("apply_delay", std::int64_t{0});
  if (json.contains("readings")) {
    faults.reading_delay = json["readings"].value("delay", std::int64_t{0});
    faults.missing_readings = json["readings"].value("missing", 0.0);
  }
  if (json.contains("restart")) {
    const Json& restart = json["restart"];
    faults.restart = {.after = restart["after"].get<std::int64_t>(),
                      .checkpoint_every = restart.value("checkpoint_every", std::int64_t{1}),
                      .takes = from_seconds(restart.value("takes_s", 0.0))};
  }
  return faults;
}

}  // namespace vramlab
