// Random buffers: every plan is sound and no smaller than the bound; few buffers have the optimum that trying
// every order finds; and rectangles that were cut up fit together again.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "plan/planner.hpp"
#include "plan/validator.hpp"

namespace vramlab {
namespace {

// The same buffers on every run; RC_PARAMS="seed=…" tries others.
[[maybe_unused]] const int kSeededPlans = setenv("RC_PARAMS", "seed=20240917", 0);

std::vector<Buffer> any_buffers(std::size_t most, std::int64_t times, Bytes most_bytes) {
  const std::size_t count = *rc::gen::inRange<std::size_t>(0, most + 1);
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t lower = *rc::gen::inRange<std::int64_t>(0, times);
    buffers.push_back({lower, *rc::gen::inRange<std::int64_t>(lower + 1, times + 2),
                       *rc::gen::inRange<Bytes>(0, most_bytes)});
  }
  return buffers;
}

bool meet(const Buffer& a, const Buffer& b) { return a.lower < b.upper && b.lower < a.upper; }

// The lowest place that is free of all that lie there already.
Bytes lowest(const std::vector<Buffer>& buffers, const std::vector<Bytes>& offsets,
             const std::vector<std::size_t>& placed, std::size_t buffer) {
  std::vector<std::size_t> beside;
  for (const std::size_t other : placed) {
    if (meet(buffers[buffer], buffers[other])) beside.push_back(other);
  }
  std::sort(beside.begin(), beside.end(),
            [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
  Bytes place = 0;
  for (const std::size_t other : beside) {
    if (offsets[other] >= place + buffers[buffer].size) break;
    place = std::max(place, offsets[other] + buffers[other].size);
  }
  return place;
}

// Every plan can be pushed down to one that some order of lowest places makes.
Bytes least_of_all_orders(const std::vector<Buffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Bytes least = buffers.empty() ? 0 : kMostBufferBytes;
  do {
    std::vector<Bytes> offsets(buffers.size());
    std::vector<std::size_t> placed;
    Bytes top = 0;
    for (const std::size_t buffer : order) {
      if (buffers[buffer].size == 0) continue;
      offsets[buffer] = lowest(buffers, offsets, placed, buffer);
      placed.push_back(buffer);
      top = std::max(top, offsets[buffer] + buffers[buffer].size);
    }
    least = std::min(least, top);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(PlannerProperties, EveryPlanIsSoundAndNoSmallerThanItsBound) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<Buffer> buffers = any_buffers(60, 40, 100);
    const MemoryPlan plan = plan_memory(buffers, {.work = 2000});
    const PlanCheck check = check_plan(buffers, plan.offsets);
    RC_ASSERT(check.sound());
    RC_ASSERT(check.top == plan.planned);
    RC_ASSERT(check.load == plan.load);
    RC_ASSERT(plan.load <= plan.bound);
    RC_ASSERT(plan.bound <= plan.planned);
  }));
}

TEST(PlannerProperties, SixBuffersHaveTheOptimumOfAllOrders) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<Buffer> buffers = any_buffers(6, 5, 5);
    const MemoryPlan plan = plan_memory(buffers);
    RC_ASSERT(plan.planned == least_of_all_orders(buffers));
    RC_ASSERT(plan.is_least());
  }));
}

// Dense, so that the load alone often does not do.
TEST(PlannerProperties, SevenBuffersThatFillTheirTimeDoToo) {
  EXPECT_TRUE(rc::check([] {
    std::vector<Buffer> buffers = any_buffers(7, 3, 4);
    const MemoryPlan plan = plan_memory(buffers);
    RC_ASSERT(plan.planned == least_of_all_orders(buffers));
    RC_ASSERT(plan.bound == plan.planned);
    const MemoryPlan asked = plan_memory(buffers, {.capacity = plan.planned});
    RC_ASSERT(asked.planned == plan.planned);
    if (plan.planned <= plan.load) return;
    RC_ASSERT(plan_memory(buffers, {.capacity = plan.planned - 1}).bound == plan.planned);
  }));
}

// A rectangle of 100 bytes and 100 times, cut again and again.
TEST(PlannerProperties, WhatWasCutFromARectangleFitsIntoIt) {
  EXPECT_TRUE(rc::check([] {
    std::vector<Buffer> pieces{{0, 100, 100}};
    const int cuts = *rc::gen::inRange(1, 16);
    for (int i = 0; i < cuts; ++i) {
      Buffer& piece = pieces[*rc::gen::inRange<std::size_t>(0, pieces.size())];
      if (*rc::gen::arbitrary<bool>()) {
        if (piece.size < 2) continue;
        const Bytes below = *rc::gen::inRange<Bytes>(1, piece.size);
        piece.size -= below;
        pieces.push_back({piece.lower, piece.upper, below});
      } else {
        if (piece.upper - piece.lower < 2) continue;
        const std::int64_t cut = *rc::gen::inRange<std::int64_t>(piece.lower + 1, piece.upper);
        const Buffer later{cut, piece.upper, piece.size};
        piece.upper = cut;
        pieces.push_back(later);
      }
    }
    RC_ASSERT(plan_memory(pieces).planned == Bytes{100});
  }));
}

}  // namespace
}  // namespace vramlab
