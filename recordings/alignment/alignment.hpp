// Two recorded programs held against each other, request by request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "recordings/alignment/steps.hpp"
#include "recordings/lifetimes/uses.hpp"
#include "recordings/replay/lifetimes.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// One of the programs that are aligned, with what is read off it.
struct ReadProgram {
  explicit ReadProgram(ClientProgram read);

  ClientProgram program;
  ProgramUses uses;
  ProgramSteps steps;
  std::vector<Lifetime> lifetimes;
  bool has_stacks = false;
};

/// Where requests are made: "file.py:12 function", the innermost line that the reader wrote. Number 0 is no
/// stack.
using SiteId = std::uint32_t;

inline constexpr std::uint32_t kUnpaired = 0xFFFF'FFFF;

/// Which request of one program is which of the other.
struct Alignment {
  std::vector<std::uint32_t> b_of;  ///< by action of A: that of B, or kUnpaired
  std::vector<std::uint32_t> a_of;  ///< by action of B
  std::vector<SiteId> site_a;       ///< by action of A; one that moved to another line has one number in both
  std::vector<SiteId> site_b;
  std::vector<std::string> sites;  ///< by number
  /// By action: how many pairs come before it. Frees and requests have no other place in common.
  std::vector<std::uint32_t> rank_a;
  std::vector<std::uint32_t> rank_b;
};

/// Number of a stream among those of its program, in the order of their first requests; 0 = default.
std::vector<std::uint32_t> stream_numbers(const ClientProgram& program);

/// Pairs requests (and calls that concern the whole allocator) within the same stretch, in order: first those
/// of equal size, stream and function, then what lies between them whatever its size. Where nearly all of a
/// stretch has another size, only function and order count. Frees, and marks, go with their blocks.
Alignment align(const ReadProgram& a, const ReadProgram& b);

}  // namespace vramlab
