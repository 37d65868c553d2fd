// A program between two: one of them with some of its differences from the other taken back.
#pragma once

#include <cstdint>
#include <vector>

#include "recordings/alignment/alignment.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// Number of a cause that differences have in common. 0 = the order of frees that means nothing.
using CauseId = std::uint32_t;

/// Every difference between two aligned programs with its cause.
struct Differences {
  std::vector<CauseId> only_a;  ///< by action of A: of one without a partner
  std::vector<CauseId> only_b;  ///< by action of B
  std::vector<CauseId> size;    ///< by action of B: of a pair, that its size is another
  std::vector<CauseId> life;    ///< by action of B: of a pair, that it is freed at another place
};

/// The program that is B in what the causes marked in `of_b` cover and A in the rest: with all of them B's
/// own actions, with none A's. Without stacks and notes; `of_b[0]` says whose order holds where nothing else
/// does.
ClientProgram blended(const ReadProgram& a, const ReadProgram& b, const Alignment& alignment,
                      const Differences& differences, const std::vector<bool>& of_b);

}  // namespace vramlab
