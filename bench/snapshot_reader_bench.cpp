// Reading snapshots, against only reading the bytes of the file. VRAMLAB_SNAPSHOT names a file; without it a
// committed recording is read.
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <benchmark/benchmark.h>

#include "recordings/input_file.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {
namespace {

std::filesystem::path file() {
  const char* const named = std::getenv("VRAMLAB_SNAPSHOT");
  if (named != nullptr) return named;
  return std::filesystem::path(VRAMLAB_SOURCE_DIR) / "tests/data/recorded/bert.pickle.gz";
}

std::int64_t read_bytes() {
  InputFile in(file());
  std::vector<char> piece(1 << 20);
  std::int64_t bytes = 0;
  while (const std::size_t read = in.read(piece.data(), piece.size()))
    bytes += static_cast<std::int64_t>(read);
  return bytes;
}

void bytes_only(benchmark::State& state) {
  std::int64_t bytes = 0;
  for (auto _ : state) bytes += read_bytes();
  state.SetBytesProcessed(bytes);
}

void snapshot(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(read_torch_snapshot(file()));
  state.SetBytesProcessed(read_bytes() * static_cast<std::int64_t>(state.iterations()));
}

BENCHMARK(bytes_only)->Unit(benchmark::kMillisecond);
BENCHMARK(snapshot)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vramlab
