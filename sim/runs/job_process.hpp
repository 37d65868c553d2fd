// One process of a job on one card that it shares with others, and the step programs it performs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "models/step_program.hpp"
#include "models/workload_model.hpp"
#include "sim/runs/cluster_books.hpp"
#include "sim/runs/step_executor.hpp"

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

// One process of a job on one card that it shares with others.

/// A context, an allocator of its own, and the steps it performs on them. What it holds goes back to the card
/// when it is destroyed.
class JobProcess {
 public:
  /// The card must outlive the process. Nothing is taken yet.
  JobProcess(SimulatedCard& card, Bytes context_bytes, const AllocatorOptions& options);
  ~JobProcess();
  JobProcess(const JobProcess&) = delete;
  JobProcess& operator=(const JobProcess&) = delete;

  /// Opens the context. False if the card has too little left for it.
  [[nodiscard]] bool open();

  struct Step {
    bool ok = true;
    SimTime driver_time{0};
    /// From here on the same program at the same shape goes on as it did, whatever other processes do: no
    /// driver call since an equal state, or, which is an assumption, none in 24 steps before this one.
    bool settled = false;
  };

  /// Performs `program`; `key` names it, `shape` the parameters it was made for.
  Step run(const StepProgram& program, std::uint64_t key, std::uint64_t shape = 0);

  [[nodiscard]] Holding holding() const;

 private:
  [[nodiscard]] std::vector<std::int64_t> driver_calls() const;
  [[nodiscard]] bool is_settled(std::uint64_t key, const std::vector<std::int64_t>& calls_before);

  SimulatedCard& card_;
  Bytes context_bytes_;
  bool open_ = false;
  Bytes segments_ = 0;  ///< physical memory behind its segments
  SimulatedProcess process_;
  std::uint64_t last_key_ = 0;
  int quiet_steps_ = 0;
  std::set<std::vector<std::uint64_t>> seen_;  ///< states since the last driver call or change of program
};

}  // namespace vramlab
