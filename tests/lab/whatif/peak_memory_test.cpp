// Where memory was allocated, nested as the program called it: each level adds up to the one above.
#include "lab/whatif/peak_memory.hpp"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/whatif/whatif.hpp"
#include "recordings/open.hpp"
#include "recordings/scripts/allocation_script.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

const fs::path kSharedData = fs::path{VRAMLAB_SOURCE_DIR} / "../shared/data";

/// train.py calls model.py, which calls layer.py or allocates itself; one block has no stack.
ClientProgram program_with_stacks() {
  ClientProgram program = parse_allocation_script(
      "op,id,bytes,stream,pool,text\nalloc,a,4MiB\nalloc,b,3MiB\nalloc,c,2MiB\nmark,,,,,half\nalloc,d,1MiB\n"
      "alloc,e,5MiB\nfree,a\nmark,,,,,all\n",
      "script");
  program.frames = {{"main", "/u/train.py", 9},
                    {"forward", "/u/model.py", 5},
                    {"forward", "/u/layer.py", 3},
                    {"forward", "/u/model.py", 7}};
  program.stacks = {{}, {2, 1, 0}, {3, 1, 0}, {1, 0}, {0}};
  const std::array<std::uint32_t, 5> stack_of{1, 2, 3, 0, 4};
  for (ClientAction& action : program.actions)
    if (action.kind == ClientAction::Kind::alloc) action.detail = stack_of.at(action.block);
  program.failures.push_back({.action = 3});
  return program;
}

StackTree tree_at(const ClientProgram& program, const std::string& at, const Grouping& grouping) {
  WhatIfQuestion question;
  question.confs = {""};
  question.peaks = true;
  question.at = at;
  question.grouping = grouping;
  return answer_whatif({program}, question).ranks.at(0).at(0).kept->peak.tree;
}

TEST(PeakMemoryTest, NestsWhatCalledEachOther) {
  const StackTree tree = tree_at(program_with_stacks(), "peak", {.by = GroupBy::stack});
  EXPECT_EQ(tree.bytes, 15_MiB);
  EXPECT_EQ(tree.blocks, 5U);
  ASSERT_EQ(tree.children.size(), 2U);
  const StackTree& main = tree.children[0];
  EXPECT_THAT(main.lines, ElementsAre("train.py:9 main"));
  EXPECT_EQ(main.bytes, 14_MiB);
  ASSERT_EQ(main.children.size(), 2U);
  EXPECT_THAT(main.children[0].lines, ElementsAre("model.py:5 forward"));
  EXPECT_EQ(main.children[0].bytes, 9_MiB);
  ASSERT_EQ(main.children[0].children.size(), 3U);
  EXPECT_THAT(main.children[0].children[0].lines, ElementsAre("layer.py:3 forward"));
  EXPECT_THAT(main.children[0].children[1].lines, ElementsAre("model.py:7 forward"));
  EXPECT_THAT(main.children[0].children[2].lines, IsEmpty());  // by model.py:5 itself
  EXPECT_EQ(main.children[0].children[2].bytes, 2_MiB);
  EXPECT_THAT(main.children[1].lines, IsEmpty());
  EXPECT_EQ(main.children[1].bytes, 5_MiB);
  EXPECT_THAT(tree.children[1].lines, ElementsAre(kNoStack));
}

// A file that calls itself is there once, and what is alone below a line is one row with it.
TEST(PeakMemoryTest, OfFilesAndDepthsItKeepsTheSums) {
  const StackTree files = tree_at(program_with_stacks(), "peak", {.by = GroupBy::file});
  ASSERT_EQ(files.children.size(), 2U);
  ASSERT_EQ(files.children[0].children.size(), 2U);
  EXPECT_THAT(files.children[0].children[0].lines, ElementsAre("/u/model.py"));
  EXPECT_EQ(files.children[0].children[0].children.size(), 2U);  // layer.py, and model.py itself
  const StackTree flat = tree_at(program_with_stacks(), "peak", {.by = GroupBy::module, .depth = 1});
  ASSERT_EQ(flat.children.size(), 2U);
  EXPECT_EQ(flat.children[0].bytes, 14_MiB);
  EXPECT_THAT(flat.children[0].children, IsEmpty());
  const StackTree half = tree_at(program_with_stacks(), "half", {});
  ASSERT_EQ(half.children.size(), 1U);
  EXPECT_THAT(half.children[0].lines, ElementsAre("train.py:9 main", "model.py:5 forward"));
  EXPECT_EQ(half.bytes, 9_MiB);
}

// 40 parts of a 40th each: eight are shown, the others are one row, and the rows add up.
TEST(PeakMemoryTest, SmallPartsOfALevelAreOneRow) {
  StackTree tree{.lines = {}, .bytes = 40_MiB + 1_KiB, .blocks = 41, .children = {}};
  for (int i = 0; i < 40; ++i)
    tree.children.push_back({.lines = {std::to_string(i)}, .bytes = 1_MiB, .blocks = 1, .children = {}});
  tree.children.push_back({.lines = {"small"}, .bytes = 1_KiB, .blocks = 1, .children = {}});
  const auto rows = tree_table(tree).rows();
  ASSERT_EQ(rows.size(), 10U);  // and the total
  EXPECT_THAT(rows[8], ElementsAre("32.0 MiB", "80.0 %", "33", "… 33 more"));
  EXPECT_EQ(tree_table({}).rows().size(), 1U);
}

// Of a stack of 100,000 lines the innermost count.
TEST(PeakMemoryTest, DeepStacksAreCut) {
  const std::vector<StackFrame> frames{{"f", "/u/a.py", 1}, {"g", "/u/b.py", 2}};
  std::vector<std::uint32_t> stack;
  for (std::uint32_t i = 0; i < 100'000; ++i) stack.push_back(i % 2);
  const std::vector<std::vector<std::uint32_t>> stacks{{}, stack};
  StackTreeMaker maker(frames, stacks, GroupBy::stack);
  maker.add(1, 1_MiB, false);
  const StackTree tree = maker.tree(0);
  ASSERT_EQ(tree.children.size(), 1U);
  EXPECT_EQ(tree.children[0].lines.size(), 500U);
  EXPECT_EQ(tree.children[0].lines.back(), "a.py:1 f");
}

void expect_sums(const StackTree& tree) {
  if (tree.children.empty()) return;
  Bytes bytes = 0;
  std::uint64_t blocks = 0;
  for (const StackTree& child : tree.children) {
    EXPECT_LE(child.bytes, tree.children.front().bytes);
    EXPECT_TRUE(child.lines.empty() || child.children.size() != 1) << "a chain is one row";
    bytes += child.bytes;
    blocks += child.blocks;
    expect_sums(child);
  }
  EXPECT_EQ(bytes, tree.bytes);
  EXPECT_EQ(blocks, tree.blocks);
}

TEST(PeakMemoryTest, AddsUpAtThePeakAtMarksAndAtTheFailure) {
  const ClientProgram program = program_with_stacks();
  const std::vector<std::pair<std::string, Bytes>> moments{
      {"peak", 15_MiB}, {"half", 9_MiB}, {"all", 11_MiB}, {"failure", 9_MiB}};
  for (const auto& [at, bytes] : moments) {
    for (const GroupBy by : {GroupBy::frame, GroupBy::file, GroupBy::module, GroupBy::stack}) {
      for (const std::size_t depth : {0U, 1U, 2U}) {
        const StackTree tree = tree_at(program, at, {.by = by, .depth = depth});
        EXPECT_EQ(tree.bytes, bytes) << at;
        expect_sums(tree);
      }
    }
  }
}

class RecordedTrees : public testing::TestWithParam<const char*> {};

// The figures of the tree are the allocator's counters at every mark, to the byte.
TEST_P(RecordedTrees, AddUpToTheCountersAtEveryMark) {
  const fs::path file = kSharedData / (std::string{GetParam()} + ".pickle.gz");
  if (!fs::exists(file)) GTEST_SKIP() << file << " is not there";
  const ClientProgram program = read_client_programs(file, {}).front();
  WhatIfQuestion question;
  question.confs = {""};
  const WhatIfRow row = answer_whatif({program}, question).rows.at(0);
  EXPECT_EQ(tree_at(program, "peak", {.by = GroupBy::stack}).bytes, row.outcome.highest_allocated);
  std::size_t mark = 0;
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    if (program.actions[i].kind != ClientAction::Kind::mark) continue;
    const MemoryStats& stats = row.outcome.marks.at(mark++).stats;
    if (mark > 6 || moment_of(program, mark_after(program, i)) != i) continue;
    for (const GroupBy by : {GroupBy::file, GroupBy::module, GroupBy::stack}) {
      const StackTree tree = tree_at(program, mark_after(program, i), {.by = by, .depth = 0});
      EXPECT_EQ(static_cast<std::int64_t>(tree.bytes), stats.allocated_bytes.all().current);
      expect_sums(tree);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(WithStacks, RecordedTrees,
                         testing::Values("recorded/resnet.stacks", "programs-h200/llama.stacks",
                                         "public-snapshots/gpt-medium-training-128",
                                         "public-snapshots/transformer-complete"));

}  // namespace
}  // namespace vramlab
