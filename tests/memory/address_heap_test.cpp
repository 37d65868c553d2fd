#include "sim/memory/segments/address_heap.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

TEST(AddressHeap, TakesTheLowestPlaceThatFits) {
  AddressHeap heap(1000, 100);
  EXPECT_EQ(heap.take(30), 1000u);
  EXPECT_EQ(heap.take(30), 1030u);
  EXPECT_EQ(heap.take(40), 1060u);
  EXPECT_EQ(heap.take(1), std::nullopt);
  heap.give(1030, 30);
  heap.give(1000, 30);  // one hole of 60
  EXPECT_EQ(heap.take(50), 1000u);
}

TEST(AddressHeap, StaysAboveTheAddressThatIsAskedFor) {
  AddressHeap heap(0, 100);
  EXPECT_EQ(heap.take(10, 40), 40u);
  EXPECT_EQ(heap.take(10, 45), 50u);
  EXPECT_EQ(heap.take(10), 0u);
  EXPECT_EQ(heap.take(50, 60), std::nullopt);
}

TEST(AddressHeap, TakesAGivenPlaceOnlyIfItIsFree) {
  AddressHeap heap(1000, 100);
  EXPECT_TRUE(heap.take_at(1040, 20));
  EXPECT_FALSE(heap.take_at(1059, 1));
  EXPECT_FALSE(heap.take_at(1030, 11));
  EXPECT_FALSE(heap.take_at(1090, 11));
  EXPECT_FALSE(heap.take_at(999, 1));
  EXPECT_TRUE(heap.take_at(1030, 10));
  EXPECT_TRUE(heap.take_at(1060, 40));
  EXPECT_EQ(heap.take(30), 1000u);
}

TEST(AddressHeap, KnowsWhenItIsUnused) {
  AddressHeap heap(1000, 100);
  EXPECT_TRUE(heap.is_unused());
  heap.take_at(1050, 10);
  EXPECT_FALSE(heap.is_unused());
  heap.give(1050, 10);
  EXPECT_TRUE(heap.is_unused());
}

TEST(AddressHeap, RefusesWhatWasNotTaken) {
  AddressHeap heap(1000, 100);
  heap.take(50);
  EXPECT_THROW(heap.give(1040, 20), InternalError);
  EXPECT_THROW(heap.give(1060, 10), InternalError);
  EXPECT_THROW(heap.give(990, 20), InternalError);
  EXPECT_THROW(heap.give(1000, 200), InternalError);
}

}  // namespace
}  // namespace vramlab
