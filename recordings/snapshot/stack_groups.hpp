// What of a recorded stack says something to the person who wrote the program, and what joins blocks into one
// row.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// Stands for a stack without frames.
inline constexpr const char* kNoStack = "(no stack recorded, such as in backward)";
/// The same of a block that was in use when recording began.
inline constexpr const char* kNoStackBefore = "(in use when recording began, no stack recorded)";

/// What blocks of one group have in common.
enum class GroupBy : std::uint8_t {
  frame,   ///< the innermost line of the program
  file,    ///< its file
  module,  ///< the Python module or the installed package that asked PyTorch for memory
  stack,   ///< all lines of the program, innermost first
};

/// The name of each, in order.
inline constexpr std::array<std::string_view, 4> kGroupNames{"frame", "file", "module", "stack"};

struct Grouping {
  GroupBy by = GroupBy::frame;
  std::size_t depth =
      0;  ///< lines, files or modules that must agree, from the innermost on; 0 = 1, of stack all
  bool folded = false;  ///< keep whole stacks too, for flame graphs
};

/// The frames of one stack (places in `frames`, innermost first) that the reader wrote; lines of a library
/// count where they are a layer that PyTorch called, and where there are no others. Else what PyTorch's own
/// frames say. Never empty.
std::vector<std::string> shown_frames(std::span<const StackFrame> frames,
                                      std::span<const std::uint32_t> stack);

/// What puts a block with this stack into a group. Never empty.
std::vector<std::string> group_of(std::span<const StackFrame> frames, std::span<const std::uint32_t> stack,
                                  const Grouping& grouping);

/// Every frame, outermost first, with semicolons between, as flame graph tools read them.
std::string folded_stack(std::span<const StackFrame> frames, std::span<const std::uint32_t> stack);

/// Bytes by folded stack.
using FoldedStacks = std::map<std::string, Bytes>;

/// Whether the program ran under Windows, by the paths of its files.
bool has_windows_paths(std::span<const StackFrame> frames);

/// Blocks that have something in common.
struct PeakShare {
  std::string name;                  ///< "resnet.py:151 forward", "1 to 10 MiB", "stream 0, default pools"
  std::vector<std::string> group;    ///< of a frame, a file, …: what all its blocks share, innermost first
  std::vector<std::string> callers;  ///< of a frame: the next ones outwards that all its blocks share
  bool before_recording = false;     ///< in use when recording began
  Bytes bytes = 0;
  std::uint64_t blocks = 0;
};

/// Sums blocks up by group. What it is made from must outlive it.
class StackShares {
 public:
  StackShares(std::span<const StackFrame> frames, std::span<const std::vector<std::uint32_t>> stacks,
              const Grouping& grouping)
      : frames_(frames), stacks_(stacks), grouping_(grouping), groups_(stacks.size()) {}

  /// `apart`: blocks in use when recording began are groups of their own also where their stacks are known.
  void add(StackId stack, Bytes bytes, bool before_recording, bool apart);

  /// Largest first, equal ones by name.
  [[nodiscard]] std::vector<PeakShare> sorted() const;
  [[nodiscard]] const FoldedStacks& folded() const { return folded_; }

 private:
  struct Group {
    std::vector<std::string> lines;
    std::vector<std::string> callers;
    std::string folded;
  };
  const Group& group_at(StackId stack);

  std::span<const StackFrame> frames_;
  std::span<const std::vector<std::uint32_t>> stacks_;
  Grouping grouping_;
  std::vector<std::optional<Group>> groups_;  ///< by stack
  std::map<std::pair<std::string, bool>, PeakShare> shares_;
  FoldedStacks folded_;
};

}  // namespace vramlab
