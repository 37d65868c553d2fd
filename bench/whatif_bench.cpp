// Operations per second of a program replayed on the simulated allocator, and programs made from histories;
// what it costs to say who holds the memory, beside a replay of the same program (made_up_replay).
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "lab/whatif/holders.hpp"
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

constexpr int kLayers = 100;

/// A training in steps of some 1,000 actions each, written as a script: weights, activations of another size
/// in every step, a temporary a layer, gradients that the next step frees, and state after the first step.
ClientProgram made_up_training(std::int64_t steps) {
  ClientProgram program;
  program.file = "made up";
  std::vector<ProgramBlock> gradients;
  const auto alloc = [&](Bytes bytes) {
    program.actions.push_back({.bytes = bytes, .block = program.blocks, .kind = ClientAction::Kind::alloc});
    return program.blocks++;
  };
  const auto free = [&](ProgramBlock block) {
    program.actions.push_back({.block = block, .kind = ClientAction::Kind::free});
  };
  const auto weight = [](int layer) { return Bytes{1024} * static_cast<Bytes>(64 + 37 * layer); };
  for (int layer = 0; layer < kLayers; ++layer) alloc(weight(layer));
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<ProgramBlock> saved;
    const Bytes scale = 40'000 + 3'000 * static_cast<Bytes>(step * 7 % 13);
    for (int layer = 0; layer < kLayers; ++layer) {
      for (Bytes part = 1; part <= 2; ++part) saved.push_back(alloc(scale * part));
      free(alloc(scale * 4));
    }
    for (const ProgramBlock block : std::exchange(gradients, {})) free(block);
    for (int layer = kLayers; layer-- > 0;) {
      gradients.push_back(alloc(weight(layer)));
      for (int part = 0; part < 2; ++part) {
        free(saved.back());
        saved.pop_back();
      }
    }
    for (int layer = 0; step == 0 && layer < 2 * kLayers; ++layer) alloc(weight(layer / 2));
    program.texts.push_back("step " + std::to_string(step));
    program.actions.push_back({.detail = static_cast<std::uint32_t>(step), .kind = ClientAction::Kind::mark});
  }
  return program;
}

void made_up_replay(benchmark::State& state) {
  const ClientProgram program = made_up_training(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(replay_program(program, {}).highest_reserved);
  state.counters["actions"] = static_cast<double>(program.actions.size());
}
BENCHMARK(made_up_replay)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

void made_up_categories(benchmark::State& state) {
  const ClientProgram program = made_up_training(state.range(0));
  std::size_t steps = 0;
  for (auto _ : state) steps = uses_of(program).steps;
  state.counters["steps"] = static_cast<double>(steps);
}
BENCHMARK(made_up_categories)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

// All that whatif says of its first row: a replay that keeps places and counters, lifetimes, categories, time
// line, and another replay up to the moment of the pins.
void made_up_holders(benchmark::State& state) {
  const ClientProgram program = made_up_training(state.range(0));
  for (auto _ : state) {
    std::vector<BlockPlace> places;
    std::vector<ReplayedAction> actions;
    replay_program(program, {}, {.places = &places, .actions = &actions});
    const std::vector<Lifetime> lifetimes = lifetimes_of(program, &places);
    Holders holders = holders_of(program, actions, lifetimes, "");
    PlacedBlocks placed;
    placed.action = holders.pins_at;
    replay_program(program, {}, {.placed = &placed});
    add_pins(program, lifetimes, placed, holders);
    benchmark::DoNotOptimize(holders);
  }
}
BENCHMARK(made_up_holders)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vramlab
