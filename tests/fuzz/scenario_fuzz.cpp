// libFuzzer target: no text may crash the reader of scenarios, whatever kind it says it is.
#include <cstddef>
#include <cstdint>
#include <string>

#include "lab/experiment.hpp"
#include "lab/scenario/sweep.hpp"
#include "tests/fuzz/refused_or_done.hpp"

using namespace vramlab;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  refused_or_done([&] {
    const ScenarioDocument document =
        parse_document({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    (void)files_named_by(document);
    (void)read_experiment(document);
  });
  return 0;
}
