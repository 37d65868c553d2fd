// Random programs under random settings: whatever happens, the allocator stays sound, both free lists give
// the same addresses, and a copy of the state continues the same.
#include <cstdlib>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/memory/memory_rig.hpp"

namespace vramlab {
namespace {

// The same programs on every run; RC_PARAMS="seed=…" tries others.
[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=20240917", 0);

constexpr const char* kSettings[] = {
    "",
    "expandable_segments:True",
    "expandable_segments:False",
    "max_split_size_mb:20",
    "max_split_size_mb:32,max_non_split_rounding_mb:64",
    "garbage_collection_threshold:0.5",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:8,4:2,>:1],garbage_collection_threshold:0.8",
    "expandable_segments:True,max_split_size_mb:48,roundup_power2_divisions:8",
    "large_segment_size_mb:16",
};

std::string any_settings() { return kSettings[*rc::gen::inRange<std::size_t>(0, std::size(kSettings))]; }

/// One random operation of a program. Plain data, so that it can be applied to several allocators.
struct Operation {
  enum class Kind { allocate, free, record_and_free, empty_cache, settings, finish, pool, graph, reset_peak };
  Kind kind{};
  Bytes size = 0;
  StreamId stream = 0;
  std::size_t choice = 0;
  std::string conf;
};

Operation any_operation() {
  using Kind = Operation::Kind;
  Operation operation;
  operation.kind = *rc::gen::weightedElement<Kind>({{40, Kind::allocate},
                                                    {30, Kind::free},
                                                    {3, Kind::record_and_free},
                                                    {2, Kind::empty_cache},
                                                    {2, Kind::settings},
                                                    {2, Kind::finish},
                                                    {5, Kind::pool},
                                                    {5, Kind::graph},
                                                    {1, Kind::reset_peak}});
  const Bytes magnitude = Bytes{1} << *rc::gen::inRange(0, 28);
  operation.size = magnitude + *rc::gen::inRange<Bytes>(0, magnitude);
  operation.stream = *rc::gen::weightedElement<StreamId>({{6, 0}, {2, 5}, {1, 9}});
  operation.choice = *rc::gen::inRange<std::size_t>(0, 1000);
  operation.conf = any_settings();
  return operation;
}

/// A program: what it holds, and its way to perform operations.
class Program {
 public:
  explicit Program(CachingAllocator& allocator) : allocator_(allocator) {}

  /// The address for an allocation, 0 otherwise and for an OOM.
  Address perform(const Operation& operation) {
    switch (operation.kind) {
      case Operation::Kind::allocate:
        return allocate(operation.size, operation.stream);
      case Operation::Kind::free:
      case Operation::Kind::record_and_free:
        free(operation);
        return 0;
      case Operation::Kind::empty_cache:
        allocator_.empty_cache();
        return 0;
      case Operation::Kind::settings:
        allocator_.set_settings(operation.conf);
        return 0;
      case Operation::Kind::finish:
        allocator_.finish_events();
        return 0;
      case Operation::Kind::pool:
        return use_pool(operation);
      case Operation::Kind::graph:
        return use_graph(operation);
      case Operation::Kind::reset_peak:
        allocator_.reset_peak_stats();
        return 0;
    }
    return 0;
  }

 private:
  Address allocate(Bytes size, StreamId stream) {
    const AllocationResult result = allocator_.allocate(size, stream);
    if (!result) return 0;
    live_.push_back(result->block);
    return result->address;
  }

  void free(const Operation& operation) {
    if (live_.empty()) return;
    const std::size_t victim = operation.choice % live_.size();
    if (operation.kind == Operation::Kind::record_and_free) allocator_.record_stream(live_[victim], 5);
    allocator_.free(live_[victim]);
    live_[victim] = live_.back();
    live_.pop_back();
  }

  Address use_pool(const Operation& operation) {
    if (pools_.size() < 3) {
      pools_.push_back(allocator_.new_mem_pool({.use_on_oom = operation.choice % 3 == 0,
                                                .no_split = operation.choice % 4 == 0,
                                                .custom_allocator = false}));
    }
    const std::size_t index = operation.choice % pools_.size();
    if (operation.choice % 10 == 0) {
      allocator_.delete_mem_pool(pools_[index]);
      pools_.erase(pools_.begin() + static_cast<std::ptrdiff_t>(index));
      return 0;
    }
    allocator_.enter_mem_pool(pools_[index]);
    const Address address = allocate(operation.size, operation.stream);
    allocator_.leave_mem_pool(pools_[index]);
    return address;
  }

  Address use_graph(const Operation& operation) {
    if (capturing_) {
      if (operation.choice % 3 != 0) return allocate(operation.size, 9);
      allocator_.end_capture(graphs_.back());
      capturing_ = false;
    } else if (graphs_.size() < 3) {
      graphs_.push_back(allocator_.begin_capture(9));
      capturing_ = true;
    } else {
      allocator_.release_graph(graphs_.front());
      graphs_.erase(graphs_.begin());
    }
    return 0;
  }

  CachingAllocator& allocator_;
  std::vector<BlockId> live_;
  std::vector<PoolId> pools_;
  std::vector<PoolId> graphs_;
  bool capturing_ = false;
};

AllocatorOptions any_options() {
  AllocatorOptions options = with_settings(any_settings());
  if (*rc::gen::inRange(0, 3) != 0) options.limit = 300_MiB;
  return options;
}

TEST(AllocatorProperties, StaysSoundAndDoesNotDependOnTheFreeList) {
  EXPECT_TRUE(rc::check([] {
    AllocatorOptions options = any_options();
    Rig fast(400_MiB, options);
    options.free_list = FreeListKind::ordered;
    Rig reference(400_MiB, options);
    Program fast_program(fast.allocator);
    Program reference_program(reference.allocator);
    const int count = *rc::gen::inRange(1, 500);
    try {
      for (int i = 0; i < count; ++i) {
        const Operation operation = any_operation();
        const Address address = fast_program.perform(operation);
        RC_ASSERT(address == reference_program.perform(operation));
        RC_ASSERT(fast.stats() == reference.stats());
        const std::vector<std::string> broken = validate(fast.allocator);
        if (!broken.empty()) RC_FAIL(broken.front());
        RC_ASSERT(fast.card.taken() == fast.reserved());  // R10.1: device use is reserved_bytes exactly
      }
    } catch (const AllocatorFault&) {
      // R4.7 and R7.9: settings changed at run time can end a program as they end PyTorch.
    }
  }));
}

// With settings that never change a fault cannot happen (R4.7), except for the counts of R7.9.
TEST(AllocatorProperties, PlainSegmentsWithFixedSettingsNeverFault) {
  EXPECT_TRUE(rc::check([] {
    AllocatorOptions options = any_options();
    options.settings.expandable_segments = false;
    Rig rig(400_MiB, options);
    Program program(rig.allocator);
    const int count = *rc::gen::inRange(1, 500);
    for (int i = 0; i < count; ++i) {
      Operation operation = any_operation();
      if (operation.kind == Operation::Kind::settings) continue;
      program.perform(operation);
    }
    const std::vector<std::string> broken = validate(rig.allocator);
    if (!broken.empty()) RC_FAIL(broken.front());
  }));
}

TEST(AllocatorProperties, ContinuesTheSameFromACopy) {
  EXPECT_TRUE(rc::check([] {
    Rig rig(400_MiB, any_options());
    Program program(rig.allocator);
    try {
      for (int i = *rc::gen::inRange(0, 80); i > 0; --i) program.perform(any_operation());

      const CachingAllocator::State state = rig.allocator.save();
      const SimSegments::State segments = rig.segments.save();
      Program copy = program;
      std::vector<Operation> operations;
      for (int i = *rc::gen::inRange(0, 60); i > 0; --i) operations.push_back(any_operation());

      std::vector<Address> first;
      for (const Operation& operation : operations) first.push_back(program.perform(operation));
      const MemoryStats stats = rig.stats();
      std::vector<std::uint64_t> canonical;
      rig.allocator.append_canonical_state(canonical);

      rig.allocator.restore(state);
      rig.segments.restore(segments);
      std::vector<Address> second;
      for (const Operation& operation : operations) second.push_back(copy.perform(operation));
      RC_ASSERT(first == second);
      RC_ASSERT(rig.stats() == stats);
      std::vector<std::uint64_t> again;
      rig.allocator.append_canonical_state(again);
      RC_ASSERT(canonical == again);
    } catch (const AllocatorFault&) {
      // as above
    }
  }));
}

// Any single refusal of the driver leaves the allocator sound.
TEST(AllocatorProperties, SurvivesARefusalOfTheDriverAtAnyPoint) {
  EXPECT_TRUE(rc::check([] {
    SimulatedCard card(400_MiB, 0);
    SimSegments segments(card);
    FailOnNth failing(segments, *rc::gen::inRange(1, 40));
    CachingAllocator allocator(failing, any_options());
    Program program(allocator);
    try {
      for (int i = *rc::gen::inRange(1, 120); i > 0; --i) program.perform(any_operation());
    } catch (const AllocatorFault&) {
      return;
    }
    const std::vector<std::string> broken = validate(allocator);
    if (!broken.empty()) RC_FAIL(broken.front());
    RC_ASSERT(card.taken() == static_cast<Bytes>(allocator.stats().reserved_bytes.all().current));
  }));
}

}  // namespace
}  // namespace vramlab
