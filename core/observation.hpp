// What a policy may see of memory, and what happened in a step: the vocabulary between host and policies.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace vramlab {

/// The memory of one device as a program can read it (torch.cuda.memory_stats and mem_get_info).
struct MemoryView {
  Bytes allocated = 0;       ///< bytes in blocks held by the program now
  Bytes peak_allocated = 0;  ///< highest `allocated` since the device's peak counter was last reset
  Bytes reserved = 0;        ///< bytes the allocator holds from the driver now
  Bytes peak_reserved = 0;   ///< highest `reserved` since the last reset
  Bytes total = 0;           ///< what the program may use: the limit if one is set, else the card's total
  std::optional<Bytes>
      device_free{};                 ///< of the device, held by nobody now (cudaMemGetInfo); empty = not read
  std::uint64_t alloc_retries = 0;   ///< allocations that first had to flush the cache, since the start
  std::uint64_t allocator_ooms = 0;  ///< allocations the allocator refused, since the start
};

/// A reading taken at a moment of a run.
struct Observation {
  std::int64_t iteration = 0;  ///< the step just done, counted from 1; 0 before the first
  SimTime time{0};             ///< simulated time since the start of the run
  MemoryView memory;           ///< of the card that decides (view_of_cards), or of the only one
  /// The step after which `memory` was read. Below `iteration` where readings come late or one is missing; 0
  /// before the first.
  std::int64_t reading = 0;
  /// A phase of its own (validation, for one) ran since the step before: its peak and its retries are in
  /// `memory`.
  bool after_phase = false;
  /// The first step of a process, after the start or after a restart: nothing that was read of memory before
  /// holds any more. A host that goes on from a saved session says so at its first step.
  bool new_process = false;
  std::vector<MemoryView> cards{};  ///< each card's own, where a workload runs on several; else empty
};

/// How a step ended. `error`: it failed for a reason that is not lack of memory; its work is lost.
enum class StepResult : std::uint8_t { ok, oom, error };

// One workload on several cards: what to read of them where one figure is wanted.

/// Which memory counts where a workload runs on several cards.
enum class CardsRule : std::uint8_t {
  fullest,  ///< the card whose peak is the largest share of its total: it fails first
  sum       ///< peaks against totals, both summed: hides one full card
};

/// One view of several cards, by `rule`. Retries and refusals are those of all cards together, so that they
/// never fall when another card becomes the fullest. `cards` must not be empty.
MemoryView view_of_cards(std::span<const MemoryView> cards, CardsRule rule);

}  // namespace vramlab
