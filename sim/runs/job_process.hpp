// One process of a job on one card that it shares with others.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "sim/runs/cluster_books.hpp"
#include "sim/runs/step_executor.hpp"

namespace vramlab {

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
    Bytes refused = 0;  ///< not ok: what the card could not give
    /// From here on the same program at the same shape goes on as it did, whatever other processes do: no
    /// driver call since an equal state, or, which is an assumption, none in 24 steps before this one.
    bool settled = false;
  };

  /// Performs `program`; `key` names it (0 = performed once), `shape` the parameters it was made for.
  Step run(const StepProgram& program, std::uint64_t key = 0, std::uint64_t shape = 0);

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
