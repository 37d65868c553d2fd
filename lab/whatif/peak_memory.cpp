#include "lab/whatif/peak_memory.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "lab/metric.hpp"

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

// Of a tree in text: parts of a level below one in so many of the whole are one row, and those beyond so
// many.
constexpr Bytes kSmallPart = 100;
constexpr std::size_t kMostParts = 8;
constexpr std::size_t kMostLines = 3;  // of a chain in one row

std::string chain_text(const std::vector<std::string>& lines) {
  if (lines.empty()) return "(there itself)";
  if (lines.size() <= kMostLines) return fmt::format("{}", fmt::join(lines, " > "));
  return fmt::format("{} > … {} more > {}", lines.front(), lines.size() - 2, lines.back());
}

/// Writes a tree row by row.
class TreeRows {
 public:
  TreeRows(Bytes total, Table& table) : total_(total), table_(table) {}

  void add_below(const StackTree& tree, std::size_t level) {
    std::size_t shown = 0;
    while (shown < std::min(kMostParts, tree.children.size()) &&
           kSmallPart * tree.children[shown].bytes >= total_)
      ++shown;
    if (shown + 1 == tree.children.size()) ++shown;
    StackTree rest;
    for (std::size_t i = 0; i < tree.children.size(); ++i) {
      const StackTree& child = tree.children[i];
      if (i < shown) {
        add_row(child, level, chain_text(child.lines));
        add_below(child, level + 1);
      } else {
        rest.bytes += child.bytes;
        rest.blocks += child.blocks;
      }
    }
    if (shown < tree.children.size())
      add_row(rest, level, fmt::format("… {} more", tree.children.size() - shown));
  }

 private:
  void add_row(const StackTree& part, std::size_t level, const std::string& text) {
    const double share = total_ == 0 ? 0 : static_cast<double>(part.bytes) / static_cast<double>(total_);
    table_.add_row({format_bytes(part.bytes), percent_text(share), std::to_string(part.blocks),
                    std::string(2 * level, ' ') + text});
  }

  Bytes total_;
  Table& table_;
};

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
    StackTreeMaker tree(program.frames, program.stacks, grouping.by);
    for (const HeldBlock& block : blocks) {
      const bool before_recording = block.action < program.initial_actions;
      groups.add(program.actions[block.action].detail, block.size, before_recording, true);
      tree.add(program.actions[block.action].detail, block.size, before_recording);
    }
    peak.tree = tree.tree(grouping.depth);
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

Table tree_table(const StackTree& tree) {
  Table table{{"bytes", "share", "blocks", left("allocated in")}};
  TreeRows(tree.bytes, table).add_below(tree, 0);
  table.add_total({format_bytes(tree.bytes), percent_text(1), std::to_string(tree.blocks), "total"});
  return table;
}

Json tree_json(const StackTree& tree) {
  Json json{{"lines", tree.lines}, {"bytes", tree.bytes}, {"blocks", tree.blocks}};
  json["children"] = Json::array();
  for (const StackTree& child : tree.children) json["children"].push_back(tree_json(child));
  return json;
}

}  // namespace vramlab
