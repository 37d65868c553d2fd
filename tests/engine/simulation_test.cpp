#include "sim/engine/simulation.hpp"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace vramlab {
namespace {

TEST(Simulation, JumpsFromEventToEvent) {
  Simulation<int> simulation;
  std::vector<std::pair<std::int64_t, int>> seen;
  simulation.schedule(SimTime{5}, 1);
  simulation.run([&](int event) {
    seen.emplace_back(simulation.now().count(), event);
    if (event < 3) simulation.schedule(SimTime{10}, event + 1);
  });
  EXPECT_EQ(seen, (std::vector<std::pair<std::int64_t, int>>{{5, 1}, {15, 2}, {25, 3}}));
}

TEST(Simulation, StopKeepsTheRestQueued) {
  Simulation<int> simulation;
  int last = 0;
  simulation.schedule(SimTime{1}, 1);
  simulation.schedule(SimTime{2}, 2);
  simulation.run([&](int event) {
    last = event;
    simulation.stop();
  });
  EXPECT_EQ(last, 1);
  simulation.run([&](int event) { last = event; });
  EXPECT_EQ(last, 2);
}

// Two jobs of 2^62 ns after each other end at 2^63 ns, which a signed number of 64 bits does not hold.
TEST(Simulation, RefusesWhatItsClockCannotTell) {
  Simulation<int> simulation;
  simulation.schedule(SimTime{std::int64_t{1} << 62}, 1);
  EXPECT_THROW(simulation.run([&](int) { simulation.schedule(SimTime{std::int64_t{1} << 62}, 2); }),
               InputError);
  EXPECT_NO_THROW(Simulation<int>{}.schedule(kLastMoment, 1));
}

TEST(Simulation, RefusesThePast) {
  Simulation<int> simulation;
  EXPECT_THROW(simulation.schedule(SimTime{-1}, 0), InternalError);
}

}  // namespace
}  // namespace vramlab
