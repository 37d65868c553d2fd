// The text of torch.OutOfMemoryError (R4.12).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/allocator.hpp"

namespace vramlab {

/// A size as the message prints it: bytes up to 1024, then KiB, MiB and GiB with two decimals; the
/// boundaries belong to the smaller unit ("1024.00 KiB").
std::string oom_size(Bytes size);

/// What the message says beside the allocator's own figures.
struct OomSurroundings {
  struct Process {
    std::uint64_t pid = 0;
    Bytes bytes = 0;
  };
  int device = 0;
  std::vector<Process> others;       ///< other processes on the card, as NVML lists them
  std::optional<Bytes> own_process;  ///< this process with its context
};

/// The message of torch 2.11.0, in one line.
std::string oom_message(const OutOfMemory& oom, const OomSurroundings& surroundings = {});

/// What the message does not say: what was tried before, and which kinds of reserved memory are idle. One
/// line each for what is not zero; empty for an absurd size.
std::vector<std::string> oom_details(const OutOfMemory& oom);

/// The message of JAX (jaxlib up to 0.4) where its allocator finds no room: it names the bytes asked for, and
/// nothing else. As reported in jax-ml/jax issue 13428.
std::string jax_oom_message(const OutOfMemory& oom);

/// The message of backend:cudaMallocAsync, in several lines.
std::string async_oom_message(const OutOfMemory& oom, int device = 0);

}  // namespace vramlab
