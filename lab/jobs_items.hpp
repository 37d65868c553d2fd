// Reads jobs that are written one by one, in a scenario or in a list of their own, and sorts to draw from.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lab/jobs_generator.hpp"
#include "lab/jobs_models.hpp"
#include "lab/json_text.hpp"
#include "lab/scenario_parts.hpp"

namespace vramlab {

class JobItems {
 public:
  /// `accounts`: the quotas by name.
  JobItems(JobModels models, std::map<std::string, std::uint32_t> accounts)
      : models_(std::move(models)), accounts_(std::move(accounts)) {}

  /// The jobs of `list`, whose fields passed their checks; `pointer` is the place of the list. Names count
  /// from `first` where a job has none.
  std::vector<JobSpec> read(const Json& list, const std::string& pointer, std::size_t first,
                            FileProblems& problems);

  /// The sorts of a "mix". Throws InputError.
  std::vector<JobSort> read_mix(const Json& mix, const std::string& pointer);

 private:
  JobSpec read_job(const Json& json, const std::string& pointer, std::size_t number);
  void read_phases(const Json& json, const std::string& pointer, JobSpec& job);
  JobPhase read_model_phase(const Json& json, const std::string& pointer, const JobSpec& job,
                            const Point* base);
  void read_demand(const Json& json, const std::string& pointer, JobSpec& job);
  [[nodiscard]] std::uint32_t account_of(const Json& name, const std::string& pointer) const;

  JobModels models_;
  std::map<std::string, std::uint32_t> accounts_;
};

}  // namespace vramlab
