#include "sim/memory/oom_report.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "sim/memory/caching/rounding.hpp"

namespace vramlab {

std::string oom_size(Bytes size) {
  if (size <= 1_KiB) return std::to_string(size) + " bytes";
  const auto [unit, name] = size <= 1_MiB   ? std::pair{1_KiB, "KiB"}
                            : size <= 1_GiB ? std::pair{1_MiB, "MiB"}
                                            : std::pair{1_GiB, "GiB"};
  std::array<char, 48> text{};  // to_chars, because printf writes the comma of a host's locale
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(),
                    static_cast<double>(size) / static_cast<double>(unit), std::chars_format::fixed, 2);
  return std::string(text.data(), end) + ' ' + name;
}

std::string oom_message(const OutOfMemory& oom, const OomSurroundings& surroundings) {
  if (oom.requested >= kAbsurdSize)
    return "CUDA out of memory. Tried to allocate more than 1EB memory.";  // R1.1
  std::string text = "CUDA out of memory. Tried to allocate " + oom_size(oom.segment) + ". GPU " +
                     std::to_string(surroundings.device) + " has a total capacity of " +
                     oom_size(oom.device_total) + " of which " + oom_size(oom.device_free) + " is free. ";
  for (const auto& process : surroundings.others) {
    text += "Process " + std::to_string(process.pid) + " has " + oom_size(process.bytes) + " memory in use. ";
  }
  if (surroundings.own_process) {
    text += "Including non-PyTorch memory, this process has " + oom_size(*surroundings.own_process) +
            " memory in use. ";
  }
  if (oom.limit) text += oom_size(*oom.limit) + " allowed; ";
  text += "Of the allocated memory " + oom_size(oom.allocated + oom.private_pools_idle) +
          " is allocated by PyTorch, ";
  if (oom.private_pools_idle > 0) {
    text += "with " + oom_size(oom.private_pools_idle) + " allocated in private pools (e.g., CUDA Graphs), ";
  }
  text += "and " + oom_size(oom.reserved - oom.allocated - oom.private_pools_idle) +
          " is reserved by PyTorch but unallocated.";
  if (!oom.advises_expandable) return text;
  text +=
      " If reserved but unallocated memory is large try setting "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
      "Memory Management  "
      "(https://docs.pytorch.org/docs/stable/notes/"
      "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
  return text;
}

std::vector<std::string> oom_details(const OutOfMemory& oom) {
  std::vector<std::string> lines;
  if (oom.requested >= kAbsurdSize) return lines;
  const auto add = [&lines](Bytes bytes, const char* what) {
    if (bytes > 0) lines.push_back(oom_size(bytes) + ' ' + what);
  };
  add(oom.tried.collected, "given back by garbage collection");
  add(oom.tried.oversize_released, "given back from oversize blocks");
  add(oom.tried.cache_released, "given back from the cache");
  if (oom.rejected_above) {
    lines.push_back("rejected before the driver was asked: above the configured fraction, " +
                    oom_size(*oom.rejected_above) + " (throw_on_cudamalloc_oom)");
    return lines;
  }
  if (oom.segment_reserve) {
    lines.push_back("larger than a whole expandable segment, which reserves " +
                    oom_size(*oom.segment_reserve) +
                    " of addresses (expandable_segments_reserve): no allocation reaches over two");
  }
  lines.emplace_back(oom.tried.limit_refused ? "the limit refused the last try"
                                             : "the device had too little free");
  add(oom.idle.same_kind, "idle in blocks of the same pool and stream, each too small");
  add(oom.idle.other_size, "idle in the pool for the other size");
  add(oom.idle.other_streams, "idle in blocks of other streams");
  add(oom.idle.other_pools, "idle in private pools");
  add(oom.idle.waiting, "freed, but other streams may still read it");
  return lines;
}

std::string jax_oom_message(const OutOfMemory& oom) {
  return "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate " +
         std::to_string(oom.requested) + " bytes.";
}

std::string async_oom_message(const OutOfMemory& oom, int device) {
  return "Allocation on device " + std::to_string(device) +
         " would exceed allowed memory. (out of memory)\nCurrently allocated     : " +
         oom_size(oom.allocated) + "\nRequested               : " + oom_size(oom.requested) +
         "\nDevice limit            : " + oom_size(oom.device_total) +
         "\nFree (according to CUDA): " + oom_size(oom.device_free) +
         "\nPyTorch limit (set by user-supplied memory fraction)\n                        : " +
         oom_size(oom.limit.value_or(oom.device_total));
}

}  // namespace vramlab
