// The event queue against std::priority_queue with the same FIFO rule, in the same run: the classic hold
// model (take the earliest event, schedule another one), at several queue lengths.
#include <cstdint>
#include <optional>
#include <queue>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/engine/simulation.hpp"

namespace vramlab {
namespace {

/// An event with as much to carry as a real one.
struct Payload {
  std::uint64_t words[6] = {};
};

struct Entry {
  SimTime time{0};
  std::uint64_t order = 0;
  Payload payload;
  friend bool operator>(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }
};

class StandardQueue {
 public:
  void push(SimTime time, Payload payload) { queue_.push({time, order_++, payload}); }
  std::optional<Entry> pop() {
    std::optional<Entry> entry{queue_.top()};
    queue_.pop();
    return entry;
  }

 private:
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::uint64_t order_ = 0;
};

std::vector<std::int64_t> random_delays() {
  std::mt19937_64 random{1};
  std::vector<std::int64_t> delays(1 << 16);
  for (auto& delay : delays) delay = static_cast<std::int64_t>(random() % 1'000'000);
  return delays;
}

template <class Queue>
void hold(benchmark::State& state) {
  const auto delays = random_delays();
  Queue queue;
  std::size_t next = 0;
  const auto delay = [&] { return SimTime{delays[next++ % delays.size()]}; };
  for (std::int64_t i = 0; i < state.range(0); ++i) queue.push(delay(), {});
  for (auto _ : state) {
    const auto entry = queue.pop();
    queue.push(entry->time + delay(), {});
    benchmark::DoNotOptimize(entry);
  }
}

BENCHMARK(hold<EventQueue<Payload>>)->Name("EventQueue")->RangeMultiplier(16)->Range(16, 65536);
BENCHMARK(hold<StandardQueue>)->Name("std::priority_queue")->RangeMultiplier(16)->Range(16, 65536);

}  // namespace
}  // namespace vramlab
