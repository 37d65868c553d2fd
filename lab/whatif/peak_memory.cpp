#include "lab/whatif/peak_memory.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

namespace vramlab {
namespace {

struct SizeClass {
  Bytes end;  ///< first size above
  const char* name;
};
// The borders of the allocator's own decisions (R1.6, R1.7), then powers.
constexpr std::array kSizeClasses{SizeClass{1_MiB + 1, "up to 1 MiB"}, SizeClass{10_MiB, "1 to 10 MiB"},
                                  SizeClass{100_MiB, "10 to 100 MiB"}, SizeClass{1_GiB, "100 MiB to 1 GiB"},
                                  SizeClass{kUnlimited, "1 GiB and more"}};

struct Held {
  Bytes bytes;
  const ClientAction& action;
};

std::vector<PeakShare> shares(const std::vector<Held>& held,
                              const std::function<std::string(const Held&)>& name_of) {
  std::map<std::string, PeakShare> by_name;
  for (const Held& block : held) {
    const std::string name = name_of(block);
    PeakShare& share = by_name[name];
    share.name = name;
    share.bytes += block.bytes;
    ++share.blocks;
  }
  std::vector<PeakShare> sorted;
  for (auto& [name, share] : by_name) sorted.push_back(std::move(share));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const PeakShare& a, const PeakShare& b) { return a.bytes > b.bytes; });
  return sorted;
}

const char* size_class(Bytes bytes) {
  return std::find_if(kSizeClasses.begin(), kSizeClasses.end(),
                      [bytes](const SizeClass& c) { return bytes < c.end; })
      ->name;
}

}  // namespace

PeakMemory peak_memory(const ClientProgram& program, const std::vector<HeldBlock>& blocks, std::size_t at,
                       const Grouping& grouping) {
  PeakMemory peak;
  peak.grouped_by = grouping.by;
  if (blocks.empty()) return peak;
  std::vector<Held> held;
  for (const HeldBlock& block : blocks) {
    const ClientAction& action = program.actions[block.action];
    held.push_back({block.size, action});
    peak.bytes += block.size;
    peak.requested += action.bytes;
    ++peak.blocks;
  }
  peak.mark = mark_after(program, at);
  const bool has_stacks = std::any_of(program.stacks.begin(), program.stacks.end(),
                                      [](const auto& stack) { return !stack.empty(); });
  if (has_stacks) {
    StackShares groups(program.frames, program.stacks, grouping);
    for (const HeldBlock& block : blocks) {
      const bool before_recording = block.action < program.initial_actions;
      groups.add(program.actions[block.action].detail, block.size, before_recording, true);
    }
    peak.by_group = groups.sorted();
    peak.folded = groups.folded();
  }
  peak.by_size = shares(held, [](const Held& block) { return size_class(block.bytes); });
  peak.by_stream = shares(held, [](const Held& block) {
    const std::string stream =
        block.action.stream == 0 ? "default stream" : "stream " + std::to_string(block.action.stream);
    const std::string pool = block.action.pool == 0 ? "" : ", MemPool " + std::to_string(block.action.pool);
    return stream + pool;
  });
  return peak;
}

}  // namespace vramlab
