// Advice on a made-up recording with stacks: 50 layers, steps of some 2,800 allocations and frees each.
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "lab/advise/advise.hpp"

namespace vramlab {
namespace {

constexpr int kLayers = 50;
constexpr int kOperations = 9;  // of a layer that save what they make, each with a temporary

/// Writes a training program with the stacks of its forward.
class Training {
 public:
  Training() {
    program_.file = "made up";
    program_.frames = {{"step", "train.py", 10}, {"forward", "model.py", 20}, {"_call_impl", "module.py", 1}};
    program_.stacks = {{}};
    for (std::uint32_t line = 0; line < 2 * kOperations; ++line) {
      program_.frames.push_back({"forward", "block.py", 30 + line});
      program_.stacks.push_back({3 + line, 2, 1, 0});  // innermost first
    }
    for (int layer = 0; layer < 2 * kLayers; ++layer) make(weight(layer / 2), 0);
  }

  void step(Bytes scale) {
    std::vector<ProgramBlock> saved;
    for (int layer = 0; layer < kLayers; ++layer) {
      for (std::uint32_t line = 0; line < kOperations; ++line) {
        const ProgramBlock temporary = make(scale * 2, 1 + 2 * line);
        saved.push_back(make(scale * (1 + line % 3), 2 + 2 * line));
        free(temporary);
      }
    }
    for (const ProgramBlock block : std::exchange(gradients_, {})) free(block);
    for (int layer = kLayers; layer-- > 0;) {
      for (int line = 0; line < kOperations; ++line) {
        free(make(scale, 0));
        free(saved.back());
        saved.pop_back();
      }
      for (int part = 0; part < 2; ++part) gradients_.push_back(make(weight(layer), 0));
    }
    program_.texts.push_back("step");
    program_.actions.push_back(
        {.detail = static_cast<std::uint32_t>(program_.texts.size() - 1), .kind = ClientAction::Kind::mark});
  }

  ClientProgram take() { return std::move(program_); }

 private:
  static Bytes weight(int layer) { return Bytes{1024} * static_cast<Bytes>(64 + 37 * layer); }
  ProgramBlock make(Bytes bytes, std::uint32_t stack) {
    program_.actions.push_back(
        {.bytes = bytes, .block = program_.blocks, .detail = stack, .kind = ClientAction::Kind::alloc});
    return program_.blocks++;
  }
  void free(ProgramBlock block) {
    program_.actions.push_back({.block = block, .kind = ClientAction::Kind::free});
  }

  ClientProgram program_;
  std::vector<ProgramBlock> gradients_;
};

// Argument: steps.
void made_up_advice(benchmark::State& state) {
  Training training;
  for (std::int64_t step = 0; step < state.range(0); ++step)
    training.step(40'000 + 3'000 * static_cast<Bytes>(step * 7 % 13));
  const ClientProgram program = training.take();
  AdviceQuestion question;
  question.ways = {Way::recompute};
  question.host_bandwidth = {25e9, "given"};
  std::size_t units = 0;
  for (auto _ : state) units = advise(program, question).units.size();
  state.counters["actions"] = static_cast<double>(program.actions.size());
  state.counters["units"] = static_cast<double>(units);
}
BENCHMARK(made_up_advice)->Arg(10)->Arg(36)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vramlab
