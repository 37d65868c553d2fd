// The step programs of the jobs of one run.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "models/workload_model.hpp"

namespace vramlab {

/// A program with the names that processes know it by.
struct JobProgram {
  StepProgram program;
  std::uint64_t key = 0;    ///< of this program, from 1
  std::uint64_t shape = 0;  ///< of the parameters it was made for, from 1; 0 = none
};

/// Makes each program of a model once. References hold as long as the object.
class JobPrograms {
 public:
  /// What `model` allocates before its first step.
  const JobProgram& build(const WorkloadModel& model);

  /// The step at `point` after `visits` earlier ones there.
  const JobProgram& step(const WorkloadModel& model, const Point& point, std::size_t visits);

  /// A job without a model: blocks that sum up to `bytes`, rounded down to whole pages, in place of those it
  /// had. They are large and of few sizes, so that what one phase leaves in the cache serves the next.
  JobProgram flat(Bytes bytes, Bytes card_total, SimTime duration);

 private:
  std::map<const WorkloadModel*, JobProgram> builds_;
  std::map<std::pair<const WorkloadModel*, Point>, std::uint64_t> shapes_;
  std::map<std::pair<std::uint64_t, std::size_t>, JobProgram> steps_;
  std::uint64_t keys_ = 0;
};

}  // namespace vramlab
