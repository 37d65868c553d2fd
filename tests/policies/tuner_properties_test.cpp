// What must hold for every built-in under anything that may be observed: bounds are kept, nothing grows soon
// after an OOM, and equal runs are equal.
#include <algorithm>
#include <cstdlib>

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include "tests/policies/tuner_rig.hpp"

namespace vramlab {
namespace {

// The same cases in every run of the tests; a failure prints how to repeat it.
class FixedSeed final : public testing::Environment {
 public:
  void SetUp() override { setenv("RC_PARAMS", "seed=1 max_success=200", 0); }
};
const auto* const kFixedSeed = testing::AddGlobalTestEnvironment(new FixedSeed);

struct Subject {
  std::string use;
  std::string profile;
  std::int64_t wait;  // after an OOM, in periods
};

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const TunerEntry& entry : builtin_policies()->tuners) {
    const std::int64_t wait = entry.name == "dual-optimizer" ? 2 : 1;
    if (entry.profiles.empty()) all.push_back({entry.name, "", wait});
    for (const PolicyProfile& profile : entry.profiles) all.push_back({entry.name, profile.name, wait});
  }
  return all;
}

// A space that leaves something of the default bounds (batch 2 to 64, lq 32 to 256), and a point in it.
struct Setting {
  ParameterSpace space;
  Point start;
  std::int64_t frequency;
};

std::int64_t drawn_between(std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high + 1); }

Setting any_setting() {
  const bool with_lq = *rc::gen::arbitrary<bool>();
  Setting setting{{{{"batch", drawn_between(1, 30), drawn_between(30, 200)}}}, {}, drawn_between(1, 6)};
  if (with_lq) setting.space.parameters.push_back({"lq", drawn_between(8, 96), drawn_between(128, 512)});
  for (const Parameter& parameter : setting.space.parameters) {
    setting.start.push_back(drawn_between(parameter.low, parameter.high));
  }
  return setting;
}

OptionMap any_options(const Subject& subject, std::int64_t frequency) {
  if (subject.use == "fixed") return {};
  OptionMap options = with_frequency(frequency);
  if (subject.use == "dual-optimizer") {
    options.set("lq_granularity", std::int64_t{1} << drawn_between(0, 5));
    options.set("oom_double_halving", *rc::gen::arbitrary<bool>());
    options.set("hold_band", *rc::gen::arbitrary<bool>());
    options.set("retry_batch", *rc::gen::arbitrary<bool>());
  }
  return options;
}

struct Step {
  StepResult result;
  Observation observation;
};

std::vector<Step> any_steps() {
  std::vector<Step> steps;
  const std::int64_t count = drawn_between(1, 80);
  for (std::int64_t i = 1; i <= count; ++i) {
    const auto allocated = static_cast<Bytes>(drawn_between(0, 1000));
    const auto peak = static_cast<Bytes>(drawn_between(0, 1000));
    const auto retries = static_cast<std::uint64_t>(drawn_between(0, 3));
    steps.push_back(
        {drawn_between(0, 9) == 0 ? StepResult::oom : StepResult::ok,
         {i,
          std::chrono::seconds(i),
          {.allocated = allocated, .peak_allocated = peak, .total = 1000, .alloc_retries = retries},
          i}});
  }
  return steps;
}

TunerSession session_of(const Subject& subject, const Setting& setting, const OptionMap& options) {
  return {builtin_policies()->tuners.make({subject.use, subject.profile, options, ""}, setting.space),
          setting.space, setting.start};
}

class EveryTuner : public testing::TestWithParam<Subject> {};
class EveryProfile : public testing::TestWithParam<Subject> {};

TEST_P(EveryTuner, KeepsEveryParameterWithinItsBounds) {
  EXPECT_TRUE(rc::check([&] {
    const Setting setting = any_setting();
    TunerSession session = session_of(GetParam(), setting, any_options(GetParam(), setting.frequency));
    for (const Step& step : any_steps()) {
      if (session.ended()) break;
      session.after_step(step.result, step.observation);
      RC_ASSERT(session.point() == setting.space.clamp(session.point()));
    }
  }));
}

// A tuner whose own bounds hold the start never asks for a value outside them, so the host never clamps it.
TEST_P(EveryProfile, AsksForNothingOutsideItsOwnBounds) {
  EXPECT_TRUE(rc::check([&] {
    const OptionMap options = any_options(GetParam(), drawn_between(1, 6));
    const auto tuner =
        builtin_policies()->tuners.make({"dual-optimizer", GetParam().profile, options, ""}, batch_and_lq());
    Point point{drawn_between(2, 64), drawn_between(32, 256)};
    for (const Step& step : any_steps()) {
      const TunerAnswer answer = tuner->decide({point, step.result}, step.observation);
      for (std::size_t i = 0; i < answer.delta.size(); ++i) point[i] += answer.delta[i];
      RC_ASSERT(point[0] >= 2 && point[0] <= 64);
      RC_ASSERT(point[1] >= 32 && point[1] <= 256);
      if (answer.end_run) break;
    }
  }));
}

TEST_P(EveryTuner, GrowsNothingWhileItWaitsAfterAnOom) {
  EXPECT_TRUE(rc::check([&] {
    const Setting setting = any_setting();
    TunerSession session = session_of(GetParam(), setting, any_options(GetParam(), setting.frequency));
    std::int64_t steps_since_oom = 1'000'000;
    for (const Step& step : any_steps()) {
      if (session.ended()) break;
      const Point before = session.point();
      session.after_step(step.result, step.observation);
      steps_since_oom = step.result == StepResult::oom ? 0 : steps_since_oom + 1;
      if (steps_since_oom >= GetParam().wait * setting.frequency) continue;
      for (std::size_t i = 0; i < before.size(); ++i) RC_ASSERT(session.point()[i] <= before[i]);
    }
  }));
}

TEST_P(EveryTuner, EqualRunsAreEqual) {
  EXPECT_TRUE(rc::check([&] {
    const Setting setting = any_setting();
    const OptionMap options = any_options(GetParam(), setting.frequency);
    TunerSession one = session_of(GetParam(), setting, options);
    TunerSession other = session_of(GetParam(), setting, options);
    for (const Step& step : any_steps()) {
      if (one.ended()) break;
      const StepDecision a = one.after_step(step.result, step.observation);
      const StepDecision b = other.after_step(step.result, step.observation);
      RC_ASSERT(a.reason == b.reason && a.log == b.log && one.point() == other.point());
    }
  }));
}

TEST_P(EveryTuner, ChangesAfterAnOomSaySo) {
  EXPECT_TRUE(rc::check([&] {
    const Setting setting = any_setting();
    TunerSession session = session_of(GetParam(), setting, any_options(GetParam(), setting.frequency));
    for (const Step& step : any_steps()) {
      if (session.ended()) break;
      const StepDecision decision = session.after_step(step.result, step.observation);
      if (!decision.moved) continue;
      RC_ASSERT(!decision.reason.empty());
      if (step.result == StepResult::oom) RC_ASSERT(session.adjustments().back().reason.starts_with("oom"));
    }
  }));
}

std::string name_of(const testing::TestParamInfo<Subject>& subject) {
  std::string name = subject.param.use + (subject.param.profile.empty() ? "" : "_") + subject.param.profile;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<Subject> dual_optimizers() {
  std::vector<Subject> all = subjects();
  std::erase_if(all, [](const Subject& subject) { return subject.use != "dual-optimizer"; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Builtins, EveryTuner, testing::ValuesIn(subjects()), name_of);
INSTANTIATE_TEST_SUITE_P(DualOptimizer, EveryProfile, testing::ValuesIn(dual_optimizers()), name_of);

}  // namespace
}  // namespace vramlab
