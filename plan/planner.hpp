// The least memory that buffers with known lifetimes need: a bound, and a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/buffers.hpp"

namespace vramlab {

struct PlanQuestion {
  std::optional<Bytes> capacity;  ///< a plan that needs no more than this will do; empty = the least
  /// How much is tried: buffers sorted or placed by packing passes, after the first few. The search after
  /// them is limited by its nodes. Never by a clock, so that the same question has the same answer
  /// everywhere.
  std::size_t work = 1'500'000;
};

struct MemoryPlan {
  std::vector<Bytes> offsets;  ///< by buffer; checked by check_plan
  Bytes load = 0;              ///< most bytes alive at once
  Bytes bound = 0;             ///< no plan needs less: the load, or more where a search has ruled it out
  Bytes planned = 0;           ///< what this plan needs
  std::size_t passes = 0;      ///< of packing
  std::size_t nodes = 0;       ///< of the search

  [[nodiscard]] bool is_least() const { return planned == bound; }
  /// Above the bound, as a share of it.
  [[nodiscard]] double gap() const {
    return bound == 0 ? 0 : static_cast<double>(planned - bound) / static_cast<double>(bound);
  }
};

/// Buffers that never live at the same time as the others are planned on their own. Throws InputError where
/// timeline_of does, and InternalError if the plan does not stand the check.
MemoryPlan plan_memory(const std::vector<Buffer>& buffers, const PlanQuestion& question = {});

}  // namespace vramlab
