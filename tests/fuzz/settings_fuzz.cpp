// libFuzzer target: settings of the allocator are refused, or leave rules that can round every size.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/memory/caching/allocator_settings.hpp"
#include "sim/memory/caching/rounding.hpp"
#include "tests/fuzz/refused_or_done.hpp"

using namespace vramlab;

namespace {

// R1.2 to R1.7, for sizes on both sides of what the rules tell apart.
void round_all(const AllocatorSettings& settings) {
  for (const Bytes base : {Bytes{1}, 512 * Bytes{1}, 1_MiB, 10_MiB, 20_MiB, 700_MiB, 3_GiB, 64_GiB}) {
    for (const Bytes size : {base - 1, base, base + 1}) {
      if (size == 0) continue;
      const Bytes rounded = rounded_size(size, settings);
      if (rounded < size || rounded % kMinBlock != 0) __builtin_trap();
      if (segment_size(rounded, settings) < rounded) __builtin_trap();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view conf(reinterpret_cast<const char*>(data), size);
  for (const TorchVersion torch : {TorchVersion{2, 1}, TorchVersion{2, 6}, TorchVersion{2, 11}}) {
    refused_or_done([&] { round_all(parse_allocator_settings(conf, {.torch = torch})); });
  }
  return 0;
}
