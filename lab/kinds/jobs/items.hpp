// The jobs of a scenario: written one by one, drawn from a mix, run as a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "lab/json.hpp"
#include "lab/kinds/jobs/sections.hpp"
#include "lab/scenario/file.hpp"
#include "policies/contract/policy_set.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/runs/job.hpp"

namespace vramlab {

/// `count` jobs that arrive evenly at random within `span`. Integers only: equal on every machine.
std::vector<JobSpec> generate_jobs(const std::vector<JobSort>& mix, std::int64_t count, SimTime span,
                                   std::uint64_t seed);

/// Sets the real use of every job to its need times 1 ± `spread` (thousandths, drawn evenly). A job with
/// several phases or variants, or with a use of its own, stays as it is. What a model uses is what it is:
/// there the need that is declared becomes that many copies of itself.
void spread_use(std::vector<JobSpec>& jobs, std::int64_t spread_milli, Bytes card_total, std::uint64_t seed);

// The models that jobs of a scenario run: read once, put at a point, and measured for what they declare.

class JobModels {
 public:
  /// Processes have contexts of `context` bytes. Models are looked up as `scenario` names them.
  JobModels(std::filesystem::path scenario, Bytes context, AllocatorOptions allocator)
      : scenario_(std::move(scenario)), context_(context), allocator_(std::move(allocator)) {}

  /// The model that `json` names or holds. Throws InputError at `pointer`, also for one without a parameter
  /// "batch".
  JobModel read(const Json& json, const std::string& pointer);

  /// Sets `demand` to what the model really takes at `demand.batch` and at the smallest batch, and a straight
  /// line between. Simulated in one process on a card that is never full.
  void measure(const JobModel& model, const std::vector<JobPhase>& phases, JobDemand& demand);

 private:
  [[nodiscard]] Bytes most_held(const JobModel& model, const std::vector<Point>& points);

  std::filesystem::path scenario_;
  Bytes context_;
  AllocatorOptions allocator_;
  std::map<std::string, std::shared_ptr<const WorkloadModel>> models_;  ///< by file
  std::map<std::pair<const WorkloadModel*, std::vector<Point>>, Bytes> held_;
};

/// What policies inside jobs are read with.
struct PolicyContext {
  std::shared_ptr<const PolicySet> known;
  bool simulates_steps = false;
  std::uint64_t seed = 1;  ///< draws the data of composers
  Bytes card_total = 0;    ///< of the largest card
  std::string file;        ///< where models and data are looked up
};

// Reads jobs that are written one by one, in a scenario or in a list of their own, and sorts to draw from.

class JobItems {
 public:
  /// `accounts`: the quotas by name.
  JobItems(JobModels models, std::map<std::string, std::uint32_t> accounts, PolicyContext context)
      : models_(std::move(models)), accounts_(std::move(accounts)), context_(std::move(context)) {}

  /// No job that is read later may have the name of one of these.
  void keep_names(const std::vector<JobSpec>& jobs) {
    for (const JobSpec& job : jobs) names_.insert(job.name);
  }

  /// The jobs of `sections`; `pointer` is the place of the list. Names count from `first` where a job has
  /// none; one that an earlier job has is a problem.
  std::vector<JobSpec> read(const std::vector<JobSection>& sections, const std::string& pointer,
                            std::size_t first, FileProblems& problems);

  /// The sorts of a "mix". Throws InputError.
  std::vector<JobSort> read_mix(const std::vector<MixSection>& sections, const std::string& pointer);

 private:
  JobSpec read_job(const JobSection& section, const std::string& pointer, std::size_t number,
                   FileProblems& problems);
  void read_composer(const JobSection& section, const std::string& pointer, JobSpec& job) const;
  void read_tuner(const JobSection& section, const std::string& pointer, JobSpec& job,
                  FileProblems& problems) const;
  void read_phases(const JobSection& section, const std::string& pointer, JobSpec& job);
  void read_demand(const JobSection& section, const std::string& pointer, JobSpec& job);
  void read_variants(const JobSection& section, const std::string& pointer, JobSpec& job,
                     FileProblems& problems);
  [[nodiscard]] std::uint32_t account_of(const std::string& name, const std::string& pointer) const;

  JobModels models_;
  std::map<std::string, std::uint32_t> accounts_;
  PolicyContext context_;
  std::unordered_set<std::string> names_{};  ///< of the jobs so far
};

}  // namespace vramlab
