// Work that is to grow no faster than what is asked for, counted: processes that are made for an oracle, and
// replays of a search for the smallest size. Times are in docs/performance.md.
#include <gtest/gtest.h>

#include "lab/kinds/training/run.hpp"
#include "lab/whatif/whatif.hpp"
#include "tests/lab/scenario_rig.hpp"

namespace vramlab {
namespace {

/// A model that counts the processes that build it.
class Counted final : public WorkloadModel {
 public:
  explicit Counted(std::shared_ptr<const WorkloadModel> model) : model_(std::move(model)) {}

  [[nodiscard]] const ParameterSpace& parameters() const override { return model_->parameters(); }
  [[nodiscard]] StepProgram build() const override {
    ++processes;
    return model_->build();
  }
  [[nodiscard]] StepProgram step(const Point& point) const override { return model_->step(point); }
  [[nodiscard]] std::size_t first_steps() const override { return model_->first_steps(); }
  [[nodiscard]] StepProgram first_step(const Point& point, std::size_t visits) const override {
    return model_->first_step(point, visits);
  }
  [[nodiscard]] std::int64_t samples(const Point& point) const override { return model_->samples(point); }
  [[nodiscard]] std::int64_t pixels(const Point& point) const override { return model_->pixels(point); }

  mutable std::size_t processes = 0;

 private:
  std::shared_ptr<const WorkloadModel> model_;
};

// Processes for the oracle of a shipped scenario with these bounds, in runs of 20 steps.
std::size_t processes_for_oracle(const std::string& name, const Json& bounds) {
  const std::string file = VRAMLAB_SOURCE_DIR "/scenarios/" + name + ".json";
  Json json = read_json_file(file);
  json.erase("expect");
  json["workload"]["iterations"] = 20;
  json["workload"]["bounds"] = bounds;
  for (const auto& [parameter, range] : bounds.items()) json["workload"]["start"][parameter] = range[0];
  TrainingScenario scenario = read_training(parse_document(json.dump(), file));
  const auto counted = std::make_shared<Counted>(scenario.model);
  scenario.model = counted;
  scenario.setup.model = counted.get();
  EXPECT_TRUE(find_oracle(scenario));
  return counted->processes;
}

// A row is one size, from 32 to n, with its largest batch. The next row's is mostly near: a look at it, at
// its neighbour, and the full runs of the best.
TEST(OracleGrowth, AFewProcessesForEachRow) {
  for (const std::int64_t n : {64, 128, 256}) {
    const auto rows = static_cast<std::size_t>(n - 32 + 1);
    const std::size_t made = processes_for_oracle("ratchet", {{"batch", {2, 64}}, {"lq", {32, n}}});
    EXPECT_GE(made, 2 * rows - 1) << n;
    EXPECT_LE(made, 4 * rows) << n;
  }
}

// As in bench_growth: each in a segment of its own size, every second one freed.
ClientProgram own_segments(std::size_t n) {
  ClientProgram program;
  for (std::size_t i = 0; i < n; ++i) {
    const auto block = static_cast<ProgramBlock>(i);
    const Bytes bytes = 10_MiB + i * 7919 % 40 * 1_MiB;
    program.actions.push_back({.bytes = bytes, .block = block, .kind = ClientAction::Kind::alloc});
    if (i % 2 == 1) program.actions.push_back({.block = block - 1, .kind = ClientAction::Kind::free});
  }
  program.blocks = static_cast<ProgramBlock>(n);
  return program;
}

// A bisection to 2 MiB of a need that grows with n: four times the blocks are two trials more. The two
// searches share theirs where no size makes it retry.
TEST(SmallestGrowth, TrialsGrowByTheLogarithm) {
  std::vector<std::size_t> trials;
  for (const std::size_t n : {std::size_t{250}, std::size_t{1000}, std::size_t{4000}}) {
    const WhatIfAnswer answer = answer_whatif({own_segments(n)}, {.confs = {""}, .smallest = true});
    ASSERT_TRUE(answer.rows.front().smallest);
    trials.push_back(answer.rows.front().trials);
  }
  EXPECT_EQ(trials[1], trials[0] + 2);
  EXPECT_EQ(trials[2], trials[1] + 2);
}

}  // namespace
}  // namespace vramlab
