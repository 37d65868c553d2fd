// Writes a snapshot of a wanted size, for measuring readers: large_snapshot FILE 1GiB
//
// The history is that of a simulated training step, repeated: 600 temporaries that come and go, and a weight
// now and then. It is simulated twice, first to know how the file begins (the final segments) and then for
// its entries, so that memory does not grow with the file.
#include <cstdio>
#include <deque>
#include <random>
#include <string>

#include "core/error.hpp"
#include "recordings/snapshot/writer.hpp"
#include "report/output_file.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kLive = 300;  // temporaries live at a time
constexpr std::size_t kStacks = 2000;

/// Stacks as deep as a real program's.
TorchSnapshot with_stacks() {
  TorchSnapshot snapshot;
  for (std::size_t i = 0; i < 4 * kStacks; ++i) {
    snapshot.frames.push_back({"forward_" + std::to_string(i), "module_" + std::to_string(i % 97) + ".py",
                               static_cast<std::int64_t>(i % 1500)});
  }
  for (std::size_t i = 0; i < kStacks; ++i) {
    auto& stack = snapshot.stacks.emplace_back();
    for (std::size_t depth = 0; depth < 30; ++depth) {
      stack.push_back(static_cast<std::uint32_t>((i * 7 + depth * 131) % snapshot.frames.size()));
    }
  }
  return snapshot;
}

/// Passes events on as entries of a snapshot.
class Pipe : public AllocatorListener {
 public:
  explicit Pipe(SnapshotWriter& writer) : writer_(writer) {}
  void on_event(const AllocatorEvent& event) override {
    const auto stack = static_cast<StackId>(1 + entries_ / 2 % kStacks);
    writer_.add(
        trace_entry_of(event, 1'795'816'287'133'010 + static_cast<std::int64_t>(entries_ * 7), stack));
    ++entries_;
  }
  [[nodiscard]] std::uint64_t entries() const { return entries_; }

 private:
  SnapshotWriter& writer_;
  std::uint64_t entries_ = 0;
};

class Program {
 public:
  explicit Program(AllocatorListener& listener) { allocator_.set_listener(&listener); }

  void step() {
    const Bytes size = random_() % 10 < 4 ? 512 + random_() % 1_MiB : 1_MiB + random_() % 30_MiB;
    live_.push_back(allocator_.allocate(size, kDefaultStream)->block);
    if (live_.size() <= kLive) return;
    allocator_.free(live_.front());
    live_.pop_front();
  }
  [[nodiscard]] const CachingAllocator& allocator() const { return allocator_; }

 private:
  SimulatedCard card_{80_GiB};
  SimSegments segments_{card_};
  CachingAllocator allocator_{segments_};
  std::mt19937_64 random_{7};
  std::deque<BlockId> live_;
};

/// Steps until `size` bytes are written, or exactly `steps` if not 0; returns the number of steps.
std::uint64_t write(const ByteSink& sink, TorchSnapshot around, Bytes size, std::uint64_t steps,
                    TorchSnapshot* end) {
  Bytes written = 0;
  const ByteSink counting = [&](std::string_view bytes) {
    written += bytes.size();
    sink(bytes);
  };
  SnapshotWriter writer{counting, around};
  writer.begin_device();
  Pipe pipe{writer};
  Program program{pipe};
  std::uint64_t done = 0;
  while (steps == 0 ? written < size : done < steps) {
    program.step();
    ++done;
  }
  writer.finish(program.allocator().settings());
  if (end != nullptr) *end = snapshot_of(program.allocator());
  return done;
}

int run(const std::string& file, Bytes size) {
  TorchSnapshot around = with_stacks();
  TorchSnapshot end;
  const ByteSink nowhere = [](std::string_view) {};
  write(nowhere, around, size, 2000, &end);
  around.segments = end.segments;  // strings that the segments name first are shorter or longer to name again
  const std::uint64_t steps = write(nowhere, around, size, 0, &end);
  around.segments = std::move(end.segments);
  OutputFile output{file};
  write([&](std::string_view bytes) { output.write(bytes); }, around, size, steps, nullptr);
  output.commit();
  std::printf("wrote %s: %llu allocations\n", file.c_str(), static_cast<unsigned long long>(steps));
  return 0;
}

}  // namespace
}  // namespace vramlab

int main(int argc, char** argv) {
  const auto size = argc == 3 ? vramlab::parse_bytes(argv[2]) : std::nullopt;
  if (!size) {
    std::fprintf(stderr, "usage: large_snapshot FILE SIZE    (such as: large_snapshot big.pickle 1GiB)\n");
    return 2;
  }
  try {
    return vramlab::run(argv[1], *size);
  } catch (const vramlab::InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
