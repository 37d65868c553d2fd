// Buffers of PyTorch's reductions: a rule that recordings of small steps tell to its end.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fit/fit_model.hpp"
#include "lab/json.hpp"
#include "models/recorded_model.hpp"
#include "tests/fit/recorded_run.hpp"

namespace vramlab {
namespace {

constexpr Bytes kH200 = 150'109'880'320;
constexpr std::int64_t kColumns = 512;
constexpr std::int64_t kCounters = 16;  // 4 bytes for each 128 columns

// A step whose backward pass sums gradients of (batch, seq) rows over the rows, in half precision.
StepRecord summing_step(std::int64_t batch, std::int64_t seq, std::int64_t buffer, bool is_first) {
  StepRecord step;
  step.mark.is_step = true;
  step.mark.label = "b" + std::to_string(batch) + " s" + std::to_string(seq);
  step.mark.parameters.scalars = {{"batch", batch}, {"seq", seq}};
  const auto make = [&](std::int64_t size, Fate fate, std::uint32_t actions) {
    step.actions.push_back({StepAction::Kind::allocate, static_cast<std::uint32_t>(step.allocations.size())});
    step.allocations.push_back({.size = static_cast<Bytes>(size), .fate = fate, .actions = actions});
  };
  if (is_first) make(4096, Fate::forever, 0);
  const auto input = static_cast<std::uint32_t>(step.allocations.size());
  make(batch * seq * kColumns * 2, Fate::freed, buffer > 0 ? 6 : 2);
  if (buffer > 0) {
    make(buffer, Fate::freed, 3);
    make(kCounters, Fate::freed, 2);
    step.actions.push_back({StepAction::Kind::free, input + 2});
    step.actions.push_back({StepAction::Kind::free, input + 1});
  }
  step.actions.push_back({StepAction::Kind::free, input});
  return step;
}

// By hand: 4 column blocks of 128; 4 bytes a column and lane, 512 · 128 · 4 = 262,144 for each 64 rows.
constexpr std::int64_t kUnit = 262'144;

RecordedRun summing_run(Bytes card) {
  RecordedRun run;
  run.build = {1 << 20};
  struct Recorded {
    std::int64_t batch, seq, units;
  };
  for (const auto [batch, seq, units] : {Recorded{3, 100, 0}, Recorded{8, 128, 16}, Recorded{9, 131, 19},
                                         Recorded{16, 131, 33}, Recorded{5, 301, 24}, Recorded{30, 78, 37}}) {
    for (int visit = 0; visit < 2; ++visit) {
      run.steps.push_back(summing_step(batch, seq, units * kUnit, run.steps.empty()));
      run.steps.back().mark.device_total = card;
    }
  }
  return run;
}

// Sizes of a step's buffers: the outer ones of pairs whose inner ones have one of the sizes in `counters`.
std::map<Bytes, std::size_t> buffers_of(const StepProgram& step, std::initializer_list<Bytes> counters) {
  std::map<Bytes, std::size_t> buffers;
  const auto& ops = step.ops;
  for (std::size_t i = 0; i + 3 < ops.size(); ++i) {
    const bool counts = std::find(counters.begin(), counters.end(), ops[i + 1].size) != counters.end();
    const bool nested = ops[i + 2].kind == MemoryOpKind::free && ops[i + 2].slot == ops[i + 1].slot &&
                        ops[i + 3].kind == MemoryOpKind::free && ops[i + 3].slot == ops[i].slot;
    if (counts && nested) ++buffers[ops[i].size];
  }
  return buffers;
}

// 0 = there is none.
Bytes buffer_at(const RecordedModel& model, std::int64_t batch, std::int64_t seq) {
  const auto buffers = buffers_of(model.step(Point{batch, seq}), {kCounters});
  return buffers.empty() ? 0 : buffers.begin()->first;
}

TEST(Reductions, GrowInStepsUntilTheyFillTheCard) {
  const FittedModel fitted = fit_model({summing_run(kH200)}, "sums");
  EXPECT_EQ(fitted.residuals.bytes_with_form(), fitted.residuals.all.bytes);
  const RecordedModel model(fitted.spec);
  EXPECT_EQ(buffer_at(model, 8, 128), 16U * kUnit);
  EXPECT_EQ(buffer_at(model, 16, 137), 35U * kUnit);  // 2,192 rows
  EXPECT_EQ(buffer_at(model, 64, 512), 512U * kUnit);
  // 132 multiprocessors · 16 blocks of 128 threads, of which 4 are side by side
  EXPECT_EQ(buffer_at(model, 66, 512), 528U * kUnit);
  EXPECT_EQ(buffer_at(model, 900, 512), 528U * kUnit);
  // no thread has more than 256 values: 1,024 rows a block
  EXPECT_EQ(buffer_at(model, 1200, 512), 600U * kUnit);
}

TEST(Reductions, GrowWithoutAnEndOnACardThatIsNotKnown) {
  const FittedModel fitted = fit_model({summing_run(0)}, "sums");
  EXPECT_EQ(buffer_at(RecordedModel(fitted.spec), 900, 512), 7200U * kUnit);
  EXPECT_THAT(fitted.warnings, testing::Contains(testing::HasSubstr("1 buffers of reductions grow until")));
  EXPECT_EQ(buffer_at(RecordedModel(fit_model({summing_run(0)}, "sums", kH200).spec), 900, 512),
            528U * kUnit);
}

TEST(Reductions, AreNotSeenInOtherPairs) {
  RecordedRun run = summing_run(kH200);
  for (StepRecord& step : run.steps) {
    for (StepAllocation& one : step.allocations) {
      if (one.fate == Fate::freed && one.size > kUnit) one.size += 512;  // a library's workspace
    }
  }
  const RecordedModel model(fit_model({run}, "pairs").spec);
  EXPECT_TRUE(std::all_of(model.spec().forms.begin(), model.spec().forms.end(),
                          [](const SizeForm& form) { return form.unit == 1; }));
}

// Of a decoder, recorded up to 3,072 tokens: (4, 128) has 512 rows, and none of the 25 buffers.
TEST(Reductions, BeginWhereAThreadWouldHave256Values) {
  const auto run = recorded_run("llama");
  if (!run) GTEST_SKIP() << "llama is not there (../shared/data/programs-h200)";
  const RecordedModel model(fit_model({*run}, "llama").spec);
  EXPECT_TRUE(buffers_of(model.step(Point{4, 255}), {32}).empty());  // 1,020 rows
  EXPECT_EQ(buffers_of(model.step(Point{8, 128}), {32}), (std::map<Bytes, std::size_t>{{8'388'608, 25}}));
}

// At shapes that no recording of the model had, up to 25,088 rows, the buffers and counters of the vision
// transformer on an H200 (tests/data/real-programs/vit-reductions.json: size and number, of all shapes).
TEST(Reductions, OfAVisionTransformerAreTheRealOnes) {
  const auto run = recorded_run("vit");
  if (!run) GTEST_SKIP() << "vit is not there (../shared/data/programs-h200)";
  const RecordedModel model(fit_model({*run}, "vit").spec);
  const Json real = read_json_file(VRAMLAB_SOURCE_DIR "/tests/data/real-programs/vit-reductions.json");
  for (const auto& shape : real["shapes"]) {
    const StepProgram step =
        model.step(Point{shape["batch"].get<std::int64_t>(), shape["px"].get<std::int64_t>()});
    const auto buffers = buffers_of(step, {16, 48, 64});
    std::map<Bytes, std::size_t> expected;
    for (const auto& buffer : shape["buffers"])
      expected[buffer["bytes"]] += buffer["count"].get<std::size_t>();
    EXPECT_EQ(buffers, expected) << shape["batch"] << ", " << shape["px"];
  }
}

}  // namespace
}  // namespace vramlab
