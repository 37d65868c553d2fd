// When the code of a forward lets go of what it made, told from the lines that ran.
#pragma once

#include <cstddef>
#include <vector>

#include "recordings/lifetimes/call_paths.hpp"
#include "recordings/replay/lifetimes.hpp"

namespace vramlab {

/// Of blocks that only backward holds in the recording, forward's own hold on them is not recorded. It is
/// taken to end like this: the operation that saved a block is the first one behind all that backward frees
/// together with it. The function that both the block's line and that operation's line belong to holds the
/// block in a variable, or passes it on within one line. A variable is given something else when the line of
/// that operation is done; what is passed on is held until the function it was passed to is left.
class Scopes {
 public:
  Scopes(const ClientProgram& program, const std::vector<Lifetime>& lifetimes)
      : program_(program), lifetimes_(lifetimes), paths_(call_paths(program)) {}

  /// Of each of `saved`, which were made in the actions [begin, end): the action before which forward lets go
  /// of it, `end` at the latest. Where no lines were recorded it is `end`.
  [[nodiscard]] std::vector<std::size_t> let_go(std::size_t begin, std::size_t end,
                                                const std::vector<ProgramBlock>& saved) const;

 private:
  const ClientProgram& program_;
  const std::vector<Lifetime>& lifetimes_;
  std::vector<CallPath> paths_;  ///< by stack
};

}  // namespace vramlab
