#include "sim/memory/caching/free_list.hpp"

#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

/// A free list over a table of blocks of its own.
class ListedBlocks {
 public:
  explicit ListedBlocks(FreeListKind kind) : list_{kind} {}

  void insert(const FreeBlock& entry) {
    if (blocks_.size() <= entry.block) blocks_.resize(std::size_t{entry.block} + 1);
    Block& block = blocks_[entry.block];
    block.stream = entry.stream;
    block.size = entry.size;
    block.address = entry.address;
    list_.insert(blocks_, entry.block);
  }
  void erase(BlockIndex index) { list_.erase(blocks_, index); }

  [[nodiscard]] BlockIndex first_not_less(StreamId stream, Bytes size) {
    return list_.first_not_less(blocks_, stream, size);
  }
  [[nodiscard]] BlockIndex next(const FreeBlock& position) { return list_.next(blocks_, position); }
  [[nodiscard]] BlockIndex previous(const FreeBlock& position) { return list_.previous(blocks_, position); }
  [[nodiscard]] std::vector<BlockIndex> in_order() const { return list_.in_order(blocks_); }

 private:
  std::vector<Block> blocks_;
  FreeList list_;
};

class EitherFreeList : public testing::TestWithParam<FreeListKind> {
 protected:
  ListedBlocks list{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Kinds, EitherFreeList, testing::Values(FreeListKind::binned, FreeListKind::ordered));

// R2.2: smallest size first, then the lowest address.
TEST_P(EitherFreeList, FindsTheSmallestThenTheLowest) {
  list.insert({0, 4096, 900, 1});
  list.insert({0, 2048, 800, 2});
  list.insert({0, 2048, 100, 3});
  list.insert({0, 1 << 30, 0, 4});
  EXPECT_EQ(list.first_not_less(0, 512), 3u);
  EXPECT_EQ(list.first_not_less(0, 2048), 3u);
  EXPECT_EQ(list.first_not_less(0, 2560), 1u);
  EXPECT_EQ(list.first_not_less(0, 8192), 4u);
  EXPECT_EQ(list.first_not_less(0, Bytes{1} << 31), kNoBlock);
  list.erase(3);
  EXPECT_EQ(list.first_not_less(0, 512), 2u);
}

// R0.3
TEST_P(EitherFreeList, KeepsStreamsApart) {
  list.insert({7, 4096, 0, 1});
  EXPECT_EQ(list.first_not_less(0, 512), kNoBlock);
  EXPECT_EQ(list.first_not_less(8, 512), kNoBlock);
  EXPECT_EQ(list.next({6, 512, 0, 9}), kNoBlock);
  EXPECT_EQ(list.previous({8, 512, 0, 9}), kNoBlock);
  EXPECT_EQ(list.first_not_less(7, 512), 1u);
}

// R0.1
TEST_P(EitherFreeList, ListsByStreamSizeAndAddress) {
  list.insert({5, 512, 0, 0});
  list.insert({0, 1024, 50, 1});
  list.insert({0, 1024, 40, 2});
  list.insert({0, 512, 60, 3});
  list.insert({0, Bytes{1} << 50, 1, 4});
  EXPECT_EQ(list.in_order(), (std::vector<BlockIndex>{3, 2, 1, 4, 0}));
}

TEST_P(EitherFreeList, WalksBothWaysWithinAStream) {
  list.insert({0, 1024, 40, 1});
  list.insert({0, 1024, 50, 2});
  list.insert({0, 1_GiB, 7, 3});
  EXPECT_EQ(list.next({0, 1024, 40, 1}), 2u);
  EXPECT_EQ(list.next({0, 1024, 50, 2}), 3u);
  EXPECT_EQ(list.next({0, 1_GiB, 7, 3}), kNoBlock);
  EXPECT_EQ(list.previous({0, 1_GiB, 7, 3}), 2u);
  EXPECT_EQ(list.previous({0, 1024, 50, 2}), 1u);
  EXPECT_EQ(list.previous({0, 1024, 40, 1}), kNoBlock);
  EXPECT_EQ(list.previous({0, 2_MiB, 0, kNoBlock}), 2u);  // the position need not be in the list
}

TEST_P(EitherFreeList, RefusesToEraseWhatItDoesNotHold) {
  list.insert({0, 1024, 40, 1});
  list.insert({0, 1024, 41, 2});
  list.erase(2);
  EXPECT_THROW(list.erase(2), InternalError);
  EXPECT_EQ(list.in_order(), std::vector<BlockIndex>{1});
}

FreeBlock any_block(BlockIndex index) {
  // Few streams and clustered sizes, so that bins hold several entries and equal sizes occur.
  const Bytes power = Bytes{512} << *rc::gen::inRange(0, 33);
  const Bytes size =
      power + 512 * *rc::gen::inRange<Bytes>(0, 4) * (*rc::gen::inRange(0, 2) ? 1 : power / 4096);
  return {*rc::gen::element<StreamId>(0, 3, 900), size, *rc::gen::inRange<Address>(0, 100000) * 512, index};
}

TEST(FreeLists, AgreeInEveryAnswer) {
  EXPECT_TRUE(rc::check([] {
    ListedBlocks binned(FreeListKind::binned);
    ListedBlocks ordered(FreeListKind::ordered);
    std::map<FreeBlock, BlockIndex> held;
    const int steps = *rc::gen::inRange(1, 200);
    for (int i = 0; i < steps; ++i) {
      const FreeBlock block = any_block(static_cast<BlockIndex>(i));
      if (held.emplace(block, block.block).second) {
        binned.insert(block);
        ordered.insert(block);
      }
      const FreeBlock probe = any_block(kNoBlock);
      RC_ASSERT(binned.first_not_less(probe.stream, probe.size) ==
                ordered.first_not_less(probe.stream, probe.size));
      RC_ASSERT(binned.next(probe) == ordered.next(probe));
      RC_ASSERT(binned.previous(probe) == ordered.previous(probe));
      if (*rc::gen::inRange(0, 3) == 0) {
        auto victim = held.begin();
        std::advance(victim, *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(held.size())));
        binned.erase(victim->second);
        ordered.erase(victim->second);
        held.erase(victim);
      }
      RC_ASSERT(binned.in_order() == ordered.in_order());
    }
  }));
}

}  // namespace
}  // namespace vramlab
