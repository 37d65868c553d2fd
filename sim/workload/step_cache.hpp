// Remembers what a program did to an allocator in a given state, so that a repeated step costs nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/memory/memory_stats.hpp"
#include "sim/workload/simulated_process.hpp"
#include "sim/workload/step_performer.hpp"

namespace vramlab {

/// The change of every counter from `before` to `after`. `after` must have counted with peaks reset at
/// `before`; so that `apply_change` can carry it over to another history.
struct StatsChange {
  MemoryStats before;
  MemoryStats after;
};

/// Applies `change` to `stats`: what rose by n rises by n, and a peak rises as far as the change took it.
void apply_change(const StatsChange& change, MemoryStats& stats);

/// Every peak of `stats` becomes its current value (R8.5).
void reset_peaks(MemoryStats& stats);

/// States of a process that were met, and where each action leads from each of them.
///
/// States are told apart by their full canonical description, never by a hash alone.
class StepCache {
 public:
  using StateId = std::uint32_t;

  /// An action, and what else its effect depends on: memory of other processes, faults.
  struct Action {
    std::uint64_t key = 0;
    Bytes others = 0;
    Bytes besides = 0;
    Bytes left = 0;
    friend auto operator<=>(const Action&, const Action&) = default;
  };

  struct Edge {
    StateId to = 0;
    StepOutcome outcome;
    StatsChange stats;
  };

  /// The id of the state that `process` is in, remembered from now on.
  StateId enter(const SimulatedProcess& process);

  /// What `action` does in state `from`, if it was seen. The pointer holds until the next non-const call.
  [[nodiscard]] const Edge* find(StateId from, const Action& action) const;

  void insert(StateId from, const Action& action, Edge edge);

  [[nodiscard]] const SimulatedProcess::State& state(StateId id) const { return nodes_[id].saved; }

  /// Number of states remembered; the caller clears the cache when it grows too large.
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  void clear();

 private:
  struct Node {
    SimulatedProcess::State saved;
    std::map<Action, Edge> edges;
  };
  struct HashWords {
    std::size_t operator()(const std::vector<std::uint64_t>& words) const;
  };

  std::vector<Node> nodes_;
  std::unordered_map<std::vector<std::uint64_t>, StateId, HashWords> ids_;
};

}  // namespace vramlab
