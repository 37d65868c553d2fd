// A training run small enough to follow by hand.
#pragma once

#include <gtest/gtest.h>

#include "models/linear.hpp"
#include "sim/runs/training_loop.hpp"

namespace vramlab {

/// 1 GiB + 0.5 GiB a sample, half of the fixed part between steps too, a step of 100 ms: 20 iterations from a
/// batch of 4, on a card of 8 GiB of which a context takes half a GiB.
class SmallTraining : public testing::Test {
 protected:
  LinearWorkload workload{{.name = "test",
                           .fixed = 1_GiB,
                           .per_sample = 512_MiB,
                           .resident = 512_MiB,
                           .batch = {"batch", 1, 64},
                           .time = {.floor_seconds = 0.1}}};
  TrainingSetup setup = [this] {
    TrainingSetup s;
    s.model = &workload;
    s.bounds = workload.parameters();
    s.start = {4};
    s.iterations = 20;
    s.process.card_total = 8_GiB;
    s.process.context_bytes = 512_MiB;
    return s;
  }();
};

}  // namespace vramlab
