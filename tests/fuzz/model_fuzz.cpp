// libFuzzer target: a workload model or a measured grid is refused, or can be asked at its smallest point.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "lab/model/file.hpp"
#include "lab/model/measured_grid.hpp"
#include "tests/fuzz/refused_or_done.hpp"

using namespace vramlab;

namespace {

void ask(const WorkloadModel& model) {
  Point least;
  for (const Parameter& parameter : model.parameters().parameters) least.push_back(parameter.low);
  (void)model.build();
  (void)model.step(least);
}

// Grids are read by name only.
void read_as_grid(const std::string& text) {
  static const std::string file =
      std::filesystem::temp_directory_path() / ("vramlab-fuzz-" + std::to_string(::getpid()) + ".json");
  std::ofstream(file, std::ios::binary) << text;
  refused_or_done([] { (void)read_grid_file(file); });
  std::filesystem::remove(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  refused_or_done([&] { ask(*parse_model(parse_json(text, "fuzz.json"), "fuzz.json: ")); });
  if (text.find("rows") != std::string::npos) read_as_grid(text);
  return 0;
}
