// The least memory that a recorded program needs, with every address known in advance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "plan/planner.hpp"
#include "recordings/replay/lifetimes.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

struct WhatIfAnswer;

/// A plan for the blocks of one program, of the sizes that PyTorch's allocator rounds them to (512 B).
struct LeastMemory {
  std::size_t blocks = 0;
  MemoryPlan plan;
  bool lower_bound = false;  ///< the file does not tell all of the program: it may need more
  std::uint64_t failed = 0;  ///< requests that failed in the recording: not in the plan
  /// What the figures suppose, one sentence each.
  std::vector<std::string> supposed;
};

/// The blocks as buffers: from the action that asks for one to the one that gives it back.
std::vector<Buffer> buffers_of(const std::vector<Lifetime>& lifetimes);

LeastMemory least_memory(const ClientProgram& program, const PlanQuestion& question = {});

/// {"load_bytes", "bound_bytes", "planned_bytes", "certified", …}.
Json least_json(const LeastMemory& least);

/// How far the best row of a what-if answer is above the plan of the program that decides; empty if the
/// answer holds no plans.
std::string left_on_the_table(const WhatIfAnswer& answer);

}  // namespace vramlab
