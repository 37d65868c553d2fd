// Histories that the simulated allocator wrote itself: what a replay infers from a history must be what
// happened, also in mixtures that no recording has (deferred frees before releases, captures under a limit).
#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recordings/replay/snapshot_replay.hpp"
#include "recordings/snapshot/final_segments.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

using Action = TraceEntry::Action;

constexpr Bytes kTotal = 8_GiB;
constexpr std::int64_t kStep = 1000;  // µs between actions of the program

class Writer : public AllocatorListener {
 public:
  void on_event(const AllocatorEvent& event) override {
    TraceEntry entry;
    entry.action = action_of(event.action);
    entry.address = event.address;
    entry.size = event.size;
    entry.stream = event.stream;
    entry.time_us = now;
    trace.push_back(entry);
  }

  static Action action_of(AllocatorEvent::Action action) {
    using A = AllocatorEvent::Action;
    const std::map<A, Action> actions{
        {A::alloc, Action::alloc},
        {A::free_requested, Action::free_requested},
        {A::free_completed, Action::free_completed},
        {A::segment_alloc, Action::segment_alloc},
        {A::segment_free, Action::segment_free},
        {A::segment_map, Action::segment_map},
        {A::segment_unmap, Action::segment_unmap},
        {A::oom, Action::oom},
    };
    return actions.at(action);
  }

  std::int64_t now = 0;
  std::vector<TraceEntry> trace;
};

struct Program {
  const char* conf;
  Bytes limit;
  bool other_streams;
};

void PrintTo(const Program& program, std::ostream* out) { *out << '"' << program.conf << '"'; }

/// A program of random requests, frees, uses by another stream and empty_cache calls, and its truth.
class Recorder {
 public:
  Recorder(const Program& program, std::uint64_t seed) : program_(program), random_(seed) {
    AllocatorOptions options;
    options.settings = parse_allocator_settings(program.conf);
    options.limit = program.limit;
    allocator_ = std::make_unique<CachingAllocator>(memory_, options);
    allocator_->set_listener(&writer_);
    truth.conf = program.conf;
    truth.limit = program.limit;
    truth.total_memory = kTotal;
  }

  void run(int actions) {
    for (int i = 0; i < actions; ++i) {
      writer_.now += kStep;
      act();
      if (i % 50 == 49) mark();
    }
    mark();
    snapshot.traces = {writer_.trace};
    snapshot.settings.conf = program_.conf;
    snapshot.segments = snapshot_segments(*allocator_, 0, {});
  }

  TorchSnapshot snapshot;
  TruthFile truth;

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  void act() {
    const std::size_t kind = below(100);
    if (kind < 55 || live_.empty()) {
      const Bytes size = 1 + random_() % (Bytes{1} << (8 + below(19)));  // up to 64 MiB
      allocate(size, program_.other_streams ? below(2) : kDefaultStream);
    } else if (kind < 98) {
      const std::size_t place = below(live_.size());
      const BlockId block = live_[place];
      live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(place));
      const bool deferred = program_.other_streams && below(4) == 0;
      if (deferred) allocator_->record_stream(block, 9);
      allocator_->free(block);
      // A deferred free whose completion follows at once looks like any other (R3.8).
      if (deferred) allocate(1, kDefaultStream);
    } else if (kind < 99) {
      allocator_->finish_events();
    } else if (!writer_.trace.empty()) {
      empty_cache();
    }
  }

  void allocate(Bytes size, StreamId stream) {
    const AllocationResult result = allocator_->allocate(size, stream);
    if (result) live_.push_back(result->block);
  }

  // One that releases nothing leaves no entry: nobody could infer it (R11.13).
  void empty_cache() {
    const std::size_t before = writer_.trace.size();
    const AllocatorState state = allocator_->save();
    allocator_->empty_cache();
    // And one before a request that needs a release itself looks like that release: a mark tells.
    const bool seen =
        std::any_of(writer_.trace.begin() + static_cast<std::ptrdiff_t>(before), writer_.trace.end(),
                    [](const TraceEntry& entry) { return is_release(entry.action); });
    if (seen) return mark();
    allocator_->restore(state);
    writer_.trace.resize(before);
  }

  void mark() {
    TruthMark mark;
    mark.label = std::to_string(truth.marks.size());
    mark.time_us = writer_.now + 1;
    for (const std::int64_t value : stat_values(allocator_->stats())) mark.stats.emplace_back(value);
    truth.marks.push_back(mark);
  }

  Program program_;
  std::mt19937_64 random_;
  SimulatedCard card_{kTotal};
  SimSegments memory_{card_};
  std::unique_ptr<CachingAllocator> allocator_;
  Writer writer_;
  std::vector<BlockId> live_;
};

class OwnHistory : public testing::TestWithParam<Program> {};

TEST_P(OwnHistory, IsReplayedExactly) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Recorder recorder(GetParam(), seed);
    recorder.run(1500);
    const SnapshotReplayResult result =
        replay_snapshot(recorder.snapshot, 0, {.truth = &recorder.truth, .limit = {}});
    EXPECT_GT(result.ooms, 0u);
    EXPECT_GT(result.allocations, 500u);
    EXPECT_EQ(result.deferred_frees > 10, GetParam().other_streams);
    if (const auto& first = result.first_divergence) {
      ADD_FAILURE() << "seed " << seed << ", entry " << first->operation << " (" << first->kind
                    << "): " << first->what << " recorded " << first->recorded << ", simulated "
                    << first->simulated;
    }
  }
}

// Without the truth the limit is not known: failures are taken from the history, all else is still predicted.
TEST(OwnHistoryWithoutTruth, ReplaysEveryEntry) {
  for (const char* conf : {"", "expandable_segments:True"}) {
    Recorder recorder(Program{conf, 300_MiB, false}, 1);
    recorder.run(1500);
    const SnapshotReplayResult result = replay_snapshot(recorder.snapshot, 0);
    EXPECT_GT(result.ooms, 0u);
    EXPECT_THAT(result.approximate, testing::ElementsAre("failures", "retries"));
    EXPECT_EQ(result.entry_mismatches, 0u);
    EXPECT_EQ(result.block_mismatches, 0u);
    EXPECT_TRUE(result.exact());
  }
}

// What forced a release, a limit or garbage collection, is not in the file: that it was forced is found from
// what was released (R4.3 to R4.8).
TEST(OwnHistoryWithoutTruth, FindsReleasesThatALimitForced) {
  for (const char* conf :
       {"max_split_size_mb:32", "garbage_collection_threshold:0.6",
        "max_split_size_mb:32,garbage_collection_threshold:0.6", "per_process_memory_fraction:0.05",
        "expandable_segments:True,max_split_size_mb:32"}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Recorder recorder(Program{conf, 400_MiB, false}, seed);
      recorder.run(1500);
      const SnapshotReplayResult result = replay_snapshot(recorder.snapshot, 0);
      EXPECT_TRUE(result.exact()) << conf << ", seed " << seed << ", entry "
                                  << result.first_divergence->operation << ": recorded "
                                  << result.first_divergence->recorded << ", simulated "
                                  << result.first_divergence->simulated;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Written, OwnHistory,
                         testing::Values(Program{"", 300_MiB, false}, Program{"", 300_MiB, true},
                                         Program{"expandable_segments:True", 300_MiB, true},
                                         Program{"max_split_size_mb:32,garbage_collection_threshold:0.6",
                                                 400_MiB, false},
                                         Program{"roundup_power2_divisions:4", 400_MiB, true}),
                         [](const auto& test) { return "program" + std::to_string(test.index); });

}  // namespace
}  // namespace vramlab
