// Operations per second of a program replayed on the simulated allocator, and programs made from histories.
#include <filesystem>

#include <benchmark/benchmark.h>

#include "recordings/open.hpp"
#include "recordings/replay/program_replay.hpp"

namespace vramlab {
namespace {

const std::filesystem::path kRecorded = std::filesystem::path(VRAMLAB_SOURCE_DIR) / "tests/data/recorded";

// bert: 9,000 allocations and frees. Arguments: a settings string, and whether the card is smaller than
// needed.
void replay(benchmark::State& state, const char* conf, Bytes usable) {
  const ClientProgram program = read_client_programs(kRecorded / "bert.pickle.gz").at(0);
  ReplaySetup setup;
  setup.settings = parse_allocator_settings(conf);
  setup.total = usable + setup.context;
  std::uint64_t operations = 0;
  for (auto _ : state) operations += replay_program(program, setup).operations;
  state.counters["op/s"] = benchmark::Counter(static_cast<double>(operations), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(replay, bert_default, "", 1024_GiB);
BENCHMARK_CAPTURE(replay, bert_expandable, "expandable_segments:True", 1024_GiB);
BENCHMARK_CAPTURE(replay, bert_max_split, "max_split_size_mb:64", 1024_GiB);

void read_program(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(read_client_programs(kRecorded / "bert.pickle.gz"));
}
BENCHMARK(read_program);

}  // namespace
}  // namespace vramlab
