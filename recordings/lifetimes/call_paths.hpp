// The stack of an allocation as the calls that led to it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// The name of a file without its folders, on any system.
std::string_view last_part(std::string_view path);

/// A frame that python/vramlab/record.py wrote: a module's name, in a file called as its class.
bool is_module_name(const StackFrame& frame);

/// The frame of something that calls its parts one after the other: torch.nn.Sequential.
bool is_container(const StackFrame& frame);

/// The Python frames of a stack, outermost first, without those that every module's call goes through.
struct CallPath {
  struct Line {
    std::uint32_t frame = 0;  ///< in ClientProgram::frames
    bool calls = false;       ///< a module
    friend bool operator==(const Line&, const Line&) = default;
  };
  std::vector<Line> lines;
  bool of_autograd = false;  ///< backward, or what it calls

  /// `stack`: of ClientProgram::stacks.
  CallPath(const ClientProgram& program, const std::vector<std::uint32_t>& stack);
};

/// By stack of the program.
std::vector<CallPath> call_paths(const ClientProgram& program);

}  // namespace vramlab
