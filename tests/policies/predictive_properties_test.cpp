// `predictive` on random linear and quadratic laws of memory with noise.
#include <gmock/gmock.h>
#include <rapidcheck.h>

#include "tests/policies/made_up_run.hpp"

namespace vramlab {
namespace {

std::int64_t between(std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high + 1); }
double share(std::int64_t low, std::int64_t high) { return 1e-4 * static_cast<double>(between(low, high)); }

struct World {
  ParameterSpace space;
  Point start;
  std::int64_t granularity = 1;
  MadeUpLaw law;
};

// Weights of all six terms, scaled so that the start takes 5 to 88 % of the card.
World any_world(double most_noise) {
  World world{
      .space = {{{"batch", between(1, 4), between(8, 256)}}}, .start = {}, .granularity = 1, .law = {}};
  const bool has_size = *rc::gen::arbitrary<bool>();
  if (has_size) {
    world.granularity = std::int64_t{1} << between(0, 5);
    world.space.parameters.push_back({"lq", 32, between(64, 512)});
  }
  for (const Parameter& parameter : world.space.parameters) {
    world.start.push_back(between(parameter.low, (parameter.low + parameter.high) / 2));
  }
  if (has_size)
    world.start[1] = std::max<std::int64_t>(32, world.start[1] / world.granularity * world.granularity);
  std::array<double, 6> weights{};
  for (double& weight : weights) weight = between(0, 1) == 0 ? 0 : share(1, 10000);
  weights[5] += 0.01;
  const auto raw = [weights, has_size](const Point& point) {
    const double b = static_cast<double>(point[0]) / 16;
    const double s = has_size ? static_cast<double>(point[1]) / 128 : 1;
    return weights[0] + weights[1] * b + weights[2] * s + weights[3] * b * s + weights[4] * s * s +
           weights[5] * b * s * s;
  };
  world.law.base = share(10, 300);
  const double scale = share(500, 8800) / raw(world.start);
  world.law.step = [raw, scale](const Point& point) { return scale * raw(point); };
  world.law.noise = most_noise * share(0, 10000);
  world.law.seed = static_cast<std::uint64_t>(between(1, 1'000'000));
  return world;
}

MadeUpRun run_of(const World& world, std::int64_t frequency) {
  const OptionMap options{{"adjustment_frequency", frequency, {}}, {"lq_granularity", world.granularity, {}}};
  return {world.law, world.space, world.start, options};
}

TEST(PredictiveProperties, NothingFailsAndBoundsAndGranularityHold) {
  EXPECT_TRUE(rc::check([] {
    const World world = any_world(0.02);
    MadeUpRun run = run_of(world, between(1, 30));
    for (int i = 0; i < 400; ++i) {
      run.step();
      RC_ASSERT(run.point() == world.space.clamp(run.point()));
      if (run.point().size() == 2) RC_ASSERT(run.point()[1] % world.granularity == 0);
    }
    RC_ASSERT(run.failed().empty());
  }));
}

TEST(PredictiveProperties, ItSettlesWithinTenEvaluationsAndTwoTurns) {
  EXPECT_TRUE(rc::check([] {
    MadeUpRun run = run_of(any_world(0.01), 10);
    run.run(500);
    RC_ASSERT(run.settled_after() <= 10);
    RC_ASSERT(run.turns() <= 2);
  }));
}

// The card gives less than its size says, from a step of its own on: whatever fails, fails once.
TEST(PredictiveProperties, NoPairFailsTwice) {
  EXPECT_TRUE(rc::check([] {
    const World world = any_world(0.02);
    MadeUpRun run = run_of(world, between(1, 30));
    const std::int64_t when = between(0, 100);
    const double left = 0.3 + share(0, 6000);
    Point smallest;
    for (const Parameter& parameter : world.space.parameters) smallest.push_back(parameter.low);
    if (smallest.size() == 2) {
      smallest[1] = (smallest[1] + world.granularity - 1) / world.granularity * world.granularity;
    }
    for (int i = 0; i < 300 && !run.session().ended(); ++i) {
      if (i == when) run.capacity = left;
      run.step();
    }
    std::vector<Point> failed = run.failed();
    std::erase(failed, smallest);
    std::sort(failed.begin(), failed.end());
    RC_ASSERT(std::adjacent_find(failed.begin(), failed.end()) == failed.end());
  }));
}

// From where a doubling surely fits: then two pairs are known, and the line with them. The last few samples
// may be left: the fifth move and each later one must bring twice as much as the one before.
TEST(PredictiveProperties, WithoutNoiseALineEndsNearTheLargestBatchThatFits) {
  EXPECT_TRUE(rc::check([] {
    const double fixed = share(0, 3000);
    const double per_sample = share(50, 1500);
    const auto most = static_cast<std::int64_t>(std::floor((0.9 - 0.01 - fixed) / per_sample));
    const std::int64_t start = between(1, 64);
    RC_PRE(2 * (fixed + per_sample * static_cast<double>(start)) <= 0.82);
    const MadeUpLaw law{
        .step = [=](const Point& point) { return fixed + per_sample * static_cast<double>(point[0]); },
        .base = 0.01};
    MadeUpRun run{law, {{{"batch", 1, 512}}}, {start}, {{"adjustment_frequency", std::int64_t{10}, {}}}};
    run.run(300);
    RC_ASSERT(run.failed().empty());
    const std::int64_t missed = most - run.point()[0];
    RC_ASSERT(missed <= 1 || static_cast<double>(missed) <= 0.1 * static_cast<double>(most));
  }));
}

}  // namespace
}  // namespace vramlab
