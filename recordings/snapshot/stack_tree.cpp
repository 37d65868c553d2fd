#include "recordings/snapshot/stack_tree.hpp"

#include <algorithm>
#include <limits>

namespace vramlab {
namespace {

constexpr std::size_t kDeepest = 500;  // lines of a stack; what called them is left out
constexpr const char* kInUseBefore = "(in use when recording began)";

}  // namespace

void StackTreeMaker::add(StackId stack, Bytes bytes, bool before_recording) {
  std::vector<std::string>& lines = lines_[stack];
  if (lines.empty()) {
    const GroupBy by = by_ == GroupBy::frame ? GroupBy::stack : by_;
    lines = group_of(frames_, stacks_[stack], {.by = by, .depth = kDeepest});
  }
  Node* node = &root_;
  const auto enter = [&](const std::string& line) {
    if (!line.empty()) node = &node->children[line];
    node->bytes += bytes;
    ++node->blocks;
  };
  enter("");
  if (before_recording) enter(stacks_[stack].empty() ? kNoStackBefore : kInUseBefore);
  if (!before_recording || !stacks_[stack].empty()) {
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) enter(*line);
  }
  node->own_bytes += bytes;
  ++node->own_blocks;
}

StackTree StackTreeMaker::tree(std::size_t depth) const {
  return tree_of("", root_, depth == 0 ? std::numeric_limits<std::size_t>::max() : depth);
}

StackTree StackTreeMaker::tree_of(const std::string& line, const Node& node, std::size_t depth) {
  StackTree tree{.lines = {}, .bytes = node.bytes, .blocks = node.blocks, .children = {}};
  if (!line.empty()) tree.lines.push_back(line);
  const Node* last = &node;
  while (!line.empty() && last->children.size() == 1 && last->own_blocks == 0) {
    const auto& [next, below] = *last->children.begin();
    tree.lines.push_back(next);
    last = &below;
  }
  if (depth == 0) return tree;
  for (const auto& [name, child] : last->children) tree.children.push_back(tree_of(name, child, depth - 1));
  if (last->own_blocks > 0 && !tree.children.empty())
    tree.children.push_back(
        {.lines = {}, .bytes = last->own_bytes, .blocks = last->own_blocks, .children = {}});
  std::ranges::stable_sort(tree.children, std::ranges::greater{}, &StackTree::bytes);
  return tree;
}

}  // namespace vramlab
