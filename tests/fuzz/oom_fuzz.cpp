// libFuzzer target: any text around an out-of-memory message is explained, or refused as none.
#include <cstddef>
#include <cstdint>
#include <string>

#include "lab/oom/diagnosis.hpp"
#include "recordings/logs/oom_log.hpp"
#include "tests/fuzz/refused_or_done.hpp"

using namespace vramlab;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  refused_or_done([&] {
    const OomLog log = read_oom_log(text);
    for (const LoggedOom& failure : log.failures)
      refused_or_done([&] { diagnose_oom(failure.message, "fuzz.txt", log); });
    for (const MemoryCounters& counters : log.counters) refused_or_done([&] { diagnose_counters(counters); });
  });
  refused_or_done([&] { diagnose_memory_stats(parse_json(text, "fuzz.txt"), "fuzz.txt"); });
  return 0;
}
