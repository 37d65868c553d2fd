// Where memory was allocated, nested as the program called it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "recordings/snapshot/stack_groups.hpp"

namespace vramlab {

/// Blocks allocated below one line of the program (or one file, or module), or below a chain of them in which
/// each was allocated by the next.
struct StackTree {
  std::vector<std::string> lines;  ///< of the chain, outermost first; empty: in the line above itself
  Bytes bytes = 0;
  std::uint64_t blocks = 0;
  /// Largest first, equal ones by name. Where there are any, their bytes and blocks add up to those above.
  std::vector<StackTree> children;
};

/// Nests blocks by their stacks. What it is made from must outlive it.
class StackTreeMaker {
 public:
  /// `by`: what a line is; frame and stack both mean the lines of the program.
  StackTreeMaker(std::span<const StackFrame> frames, std::span<const std::vector<std::uint32_t>> stacks,
                 GroupBy by)
      : frames_(frames), stacks_(stacks), by_(by), lines_(stacks.size()) {}

  /// Blocks in use when recording began lie below a line of their own that says so. Of a stack the innermost
  /// 500 lines count.
  void add(StackId stack, Bytes bytes, bool before_recording);

  /// What came, without what lies more than `depth` chains deep; 0 = all.
  [[nodiscard]] StackTree tree(std::size_t depth) const;

 private:
  struct Node {
    Bytes bytes = 0;
    std::uint64_t blocks = 0;
    Bytes own_bytes = 0;  ///< allocated by the line itself
    std::uint64_t own_blocks = 0;
    std::map<std::string, Node> children;
  };
  static StackTree tree_of(const std::string& line, const Node& node, std::size_t depth);

  std::span<const StackFrame> frames_;
  std::span<const std::vector<std::uint32_t>> stacks_;
  GroupBy by_;
  std::vector<std::vector<std::string>> lines_;  ///< by stack, innermost first; filled as they come
  Node root_;
};

}  // namespace vramlab
