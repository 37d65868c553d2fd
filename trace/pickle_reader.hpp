// A reader of Python pickles that hold plain data only. Nothing in a file is ever executed.
#pragma once

#include <string>
#include <string_view>

#include "trace/pickle_value.hpp"

namespace vramlab {

/// Reads a pickle of protocol 2 to 5 made of dicts, lists, tuples, texts, numbers, booleans and None
/// (R11.9, R11.10). `data` must outlive the result; `name` stands for the file in errors.
///
/// Throws InputError with the byte offset for everything else: an opcode that could name or build an object,
/// data that ends too early or contradicts itself, containers that contain themselves or lie more than
/// kPickleDepth deep. The memory needed is at most a small multiple of the size of `data`.
PickleDocument read_pickle(std::string_view data, const std::string& name);

/// Most levels of containers inside containers; a snapshot has about seven.
inline constexpr std::size_t kPickleDepth = 100;

/// Whether `data` begins like a pickle of protocol 2 or later.
bool looks_like_pickle(std::string_view data);

}  // namespace vramlab
