// What of a recorded stack says something to the person who wrote the program.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/torch_snapshot.hpp"

namespace vramlab {

/// Stands for a stack without frames.
inline constexpr const char* kNoStack = "(no stack recorded, such as in backward)";

/// The frames of one stack (places in `frames`, innermost first) that the reader wrote; those of Python
/// libraries if there are no others; else what the native frames say. Never empty.
std::vector<std::string> shown_frames(std::span<const StackFrame> frames,
                                      std::span<const std::uint32_t> stack);

}  // namespace vramlab
