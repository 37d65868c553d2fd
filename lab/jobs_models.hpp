// The models that jobs of a scenario run: read once, put at a point, and measured for what they declare.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lab/json_text.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/workload/job.hpp"

namespace vramlab {

class JobModels {
 public:
  /// Processes have contexts of `context` bytes. Models are looked up as `scenario` names them.
  JobModels(std::filesystem::path scenario, Bytes context, AllocatorOptions allocator)
      : scenario_(std::move(scenario)), context_(context), allocator_(std::move(allocator)) {}

  /// The model that `json` names or holds. Throws InputError at `pointer`, also for one without a parameter
  /// "batch".
  JobModel read(const Json& json, const std::string& pointer);

  /// The point with `batch` and the other parameters from `values` or, where they are not there, from `base`
  /// (may be null). Throws InputError at `pointer` for unknown, missing and unfit ones.
  [[nodiscard]] static Point point(const JobModel& model, std::int64_t batch, const Json& values,
                                   const Point* base, const std::string& pointer);

  /// Makes `phase` one of `steps` steps at `point`: its duration is that of the steps, alone on a card.
  [[nodiscard]] static JobPhase phase(const JobModel& model, const Point& point, std::int64_t steps);

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

}  // namespace vramlab
