// Where memory went at a program's peak.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "recordings/replay/program_replay.hpp"
#include "recordings/scripts/client_program.hpp"
#include "recordings/snapshot/stack_groups.hpp"
#include "recordings/snapshot/stack_tree.hpp"
#include "report/table.hpp"

namespace vramlab {

/// The blocks held when allocated memory was highest. The shares of each list are sorted by bytes and sum up
/// to `bytes`.
struct PeakMemory {
  Bytes bytes = 0;      ///< allocated: the blocks' sizes
  Bytes requested = 0;  ///< what the program asked for of them
  std::uint64_t blocks = 0;
  std::string mark;  ///< in whose stretch the peak lies; may be empty
  GroupBy grouped_by{};
  std::vector<PeakShare> by_group;  ///< by where it was allocated; empty if no stacks were recorded
  FoldedStacks folded;              ///< where the grouping asks for it
  StackTree tree;                   ///< the same nested; empty if no stacks were recorded
  std::vector<PeakShare> by_size;
  std::vector<PeakShare> by_stream;
};

/// Sorts what a replay held at its peak, which was first reached after action `at`.
PeakMemory peak_memory(const ClientProgram& program, const std::vector<HeldBlock>& held, std::size_t at,
                       const Grouping& grouping = {});

/// The tree with a line indented below what called it. Small parts of a level are one row, so that each level
/// adds up to the row above.
Table tree_table(const StackTree& tree);

/// {"lines", "bytes", "blocks", "children"}, whole.
Json tree_json(const StackTree& tree);

}  // namespace vramlab
