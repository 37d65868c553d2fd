#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "sim/engine/simulation.hpp"

namespace vramlab {
namespace {

TEST(EventQueue, HandsOutEventsByTime) {
  EventQueue<int> queue;
  queue.push(SimTime{30}, 3);
  queue.push(SimTime{10}, 1);
  queue.push(SimTime{20}, 2);

  EXPECT_EQ(queue.pop()->event, 1);
  EXPECT_EQ(queue.pop()->event, 2);
  const auto last = queue.pop();
  EXPECT_EQ(last->event, 3);
  EXPECT_EQ(last->time, SimTime{30});
  EXPECT_FALSE(queue.pop());
}

TEST(EventQueue, KeepsTheOrderOfEntryWithinOneInstant) {
  EventQueue<int> queue;
  for (int i = 0; i < 100; ++i) queue.push(SimTime{7}, i);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(queue.pop()->event, i);
}

TEST(EventQueue, PassesOverCancelledEvents) {
  EventQueue<int> queue;
  queue.push(SimTime{1}, 1);
  const EventId second = queue.push(SimTime{2}, 2);
  queue.push(SimTime{3}, 3);

  EXPECT_TRUE(queue.cancel(second));
  EXPECT_FALSE(queue.cancel(second));  // already gone
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.pop()->event, 1);
  EXPECT_EQ(queue.pop()->event, 3);
}

TEST(EventQueue, AnIdOfAnEventThatLeftCancelsNothing) {
  EventQueue<int> queue;
  const EventId first = queue.push(SimTime{1}, 1);
  EXPECT_TRUE(queue.pop());
  queue.push(SimTime{2}, 2);  // takes the slot over

  EXPECT_FALSE(queue.cancel(first));
  EXPECT_EQ(queue.pop()->event, 2);
}

// Against an ordered multimap, whose equal keys also keep their order of insertion.
TEST(EventQueue, EqualsAnOrderedMultimapUnderRandomUse) {
  std::mt19937_64 random{1};
  EventQueue<int> queue;
  std::multimap<std::int64_t, std::pair<int, EventId>> reference;
  for (int step = 0; step < 20000; ++step) {
    const auto choice = random() % 8;
    if (choice < 4) {
      const auto time = static_cast<std::int64_t>(random() % 50);
      reference.emplace(time, std::pair{step, queue.push(SimTime{time}, step)});
    } else if (choice == 4 && !reference.empty()) {
      auto victim = reference.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % reference.size()));
      ASSERT_TRUE(queue.cancel(victim->second.second));
      reference.erase(victim);
    } else {
      const auto entry = queue.pop();
      ASSERT_EQ(entry.has_value(), !reference.empty());
      if (!entry) continue;
      ASSERT_EQ(entry->time.count(), reference.begin()->first);
      ASSERT_EQ(entry->event, reference.begin()->second.first);
      reference.erase(reference.begin());
    }
    ASSERT_EQ(queue.size(), reference.size());
  }
}

}  // namespace
}  // namespace vramlab
