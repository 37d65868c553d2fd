// What a file of kind `jobs` says, key by key, and the tables of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/records/record.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/scenario/cards.hpp"
#include "lab/scenario/policies.hpp"
#include "lab/scenario/scenario.hpp"
#include "models/job_estimate.hpp"
#include "recordings/jobs/job_lists.hpp"
#include "sim/runs/job.hpp"

namespace vramlab {

/// Cards of one make.
struct PoolSection {
  std::optional<std::string> gpu;
  std::optional<Bytes> total;
  std::uint32_t count = 1;
  std::optional<std::uint32_t> per_node;
  Bytes reserve = 0;
  std::optional<Bytes> context;
};

struct QuotaSection {
  std::string name;
  Bytes bytes = 0;
};

/// A stretch of a job.
struct SpanSection {
  std::optional<SimTime> duration;
  std::optional<std::int64_t> steps;
  std::optional<NamedIntegers> set;
  std::optional<Bytes> use;
  Bytes use_per_sample = 0;
  std::optional<Bytes> need;
};

/// Another way to run a job; what it does not say is as in the job.
struct VariantSection {
  std::string name;
  const Json* model_json = nullptr;
  std::optional<NamedIntegers> at;
  std::optional<Bytes> need;
  Bytes per_sample = 0;
  SpanSection whole;
};

/// What moves the parameters of a job's model; further keys are options of the policy.
struct JobTunerSection : PolicySection {
  NamedRanges bounds;
};

/// The "workload" of a scenario of kind epoch, whose reader checks it.
struct JobEpochSection {
  const Json* json = nullptr;
};

/// Jobs of one make. What it shares with JobSpec is read into that.
struct JobSection : JobSpec {
  std::int64_t count = 1;
  SimTime every{0};
  const Json* model_json = nullptr;
  std::optional<NamedIntegers> at;
  std::optional<Bytes> need;
  std::optional<JobEstimate> estimate;
  std::optional<std::string> quota;
  SpanSection whole;  ///< of a job without phases
  std::optional<std::vector<SpanSection>> spans;
  std::vector<VariantSection> ways;
  std::optional<JobTunerSection> tuner_section;
  std::optional<PolicySection> composer_section;
  std::optional<JobEpochSection> epoch;
};

const Record<JobTunerSection>& job_tuner_table();

/// One sort of job in a mix. Needs are drawn evenly, in MiB; durations evenly in their logarithm (by
/// octaves).
struct JobSort {
  std::string name;
  std::int64_t weight = 1;
  Bytes need_low = 0;
  Bytes need_high = 0;
  SimTime shortest{0};
  SimTime longest{0};
  /// Cards, priority, batch; its need is drawn (for `batch` samples where that is above 1) unless it has a
  /// model, of which it then runs as many steps as the duration drawn holds.
  JobDemand demand;
  std::optional<JobModel> model;
  JobPhase step;  ///< one step of the model
  std::int32_t busy_milli = 1000;
};

/// The same as a file has it.
struct MixSection : JobSort {
  std::optional<Bytes> low;
  std::optional<Bytes> high;
  const Json* model_json = nullptr;
  std::optional<NamedIntegers> at;
};

struct GenerateSection {
  std::int64_t jobs = 0;
  double hours = 0;
  std::vector<MixSection> mix;
};

/// Files that jobs come from.
struct TraceSection {
  std::optional<std::string> jobs;
  std::optional<std::string> pods;
  std::optional<std::string> nodes;
  OpenbOptions openb;
  std::optional<std::string> gavel;
  std::optional<std::string> throughputs;
  GavelOptions gavel_options;
};

/// A JSON list of jobs in a file of its own.
struct JobListFile {
  std::vector<JobSection> jobs;
};

struct JobsFile : JobsScenario, ScenarioSections, CardSections {
  std::int64_t seeds = 1;
  bool simulates_steps = false;
  std::optional<std::vector<PoolSection>> pools;
  std::vector<QuotaSection> quotas;
  std::vector<JobSection> jobs;
  std::optional<GenerateSection> generate;
  std::optional<TraceSection> trace;
  double estimate_error = 0;
};

const Record<JobsFile>& jobs_file_table();
const Record<JobListFile>& job_list_table();

}  // namespace vramlab
