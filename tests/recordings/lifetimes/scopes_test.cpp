// When forward lets go of what only backward holds in a recording.
#include "recordings/lifetimes/scopes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vramlab {
namespace {

using testing::ElementsAre;

/// A forward of one call and its backward, written allocation by allocation.
class Program {
 public:
  ClientProgram program;

  /// A line of a function, "model.py:forward:10".
  std::uint32_t frame(const std::string& file, const std::string& function, std::int64_t line) {
    program.frames.push_back({function, file, line});
    return static_cast<std::uint32_t>(program.frames.size() - 1);
  }
  /// `lines`: outermost first.
  std::uint32_t stack(std::vector<std::uint32_t> lines) {
    if (program.stacks.empty()) program.stacks.emplace_back();
    program.stacks.emplace_back(lines.rbegin(), lines.rend());
    return static_cast<std::uint32_t>(program.stacks.size() - 1);
  }
  ProgramBlock make(std::uint32_t stack, Bytes bytes) {
    program.actions.push_back(
        {.bytes = bytes, .block = program.blocks, .detail = stack, .kind = ClientAction::Kind::alloc});
    return program.blocks++;
  }
  void drop(ProgramBlock block) {
    program.actions.push_back({.block = block, .kind = ClientAction::Kind::free});
  }
  /// Where forward lets go of `saved`, which backward frees in that order; as numbers of blocks: it is freed
  /// right before that one is made. `made`: by all of forward.
  std::vector<std::size_t> let_go(const std::vector<ProgramBlock>& saved) {
    const std::size_t end = program.actions.size();
    const ProgramBlock made = program.blocks;
    for (const auto& group : groups) {
      drop(make(0, 1_MiB));
      for (const ProgramBlock block : group) drop(block);
    }
    std::vector<std::size_t> blocks;
    const auto moments = Scopes(program, lifetimes_of(program)).let_go(0, end, saved);
    for (const std::size_t moment : moments)
      blocks.push_back(moment < end ? program.actions[moment].block : made);
    return blocks;
  }
  std::vector<std::vector<ProgramBlock>> groups;  ///< freed in one go in backward
};

// forward(): a = conv(x); b = norm(a) with its statistics; c = conv(b).
TEST(ScopesTest, AVariableIsGivenSomethingElseBehindTheLineThatSavesIt) {
  Program p;
  const std::uint32_t conv = p.frame("conv.py", "forward", 5);
  const std::uint32_t norm = p.frame("norm.py", "forward", 6);
  const std::uint32_t first = p.stack({p.frame("model.py", "forward", 10), conv});
  const std::uint32_t second = p.stack({p.frame("model.py", "forward", 11), norm});
  const std::uint32_t third = p.stack({p.frame("model.py", "forward", 12), conv});
  const ProgramBlock a = p.make(first, 64_MiB);
  const ProgramBlock b = p.make(second, 64_MiB);
  const ProgramBlock mean = p.make(second, 512);
  const ProgramBlock c = p.make(third, 64_MiB);
  p.groups = {{b}, {a, mean}};
  // b is saved by the convolution behind it, a and its mean by the norm, whose mean nothing else holds
  EXPECT_THAT(p.let_go({a, b, mean}), ElementsAre(c, c + 1, c));
}

// Sequential(conv, norm, conv) runs on one line.
TEST(ScopesTest, WhatIsPassedOnIsHeldUntilTheFunctionItWasPassedToIsLeft) {
  Program p;
  const std::uint32_t loop = p.frame("container.py", "forward", 253);
  const std::uint32_t conv = p.stack({loop, p.frame("conv.py", "forward", 5)});
  const std::uint32_t norm = p.frame("norm.py", "forward", 6);
  const std::uint32_t cast = p.stack({loop, norm, p.frame("functional.py", "cast", 1)});
  const std::uint32_t scale = p.stack({loop, norm, p.frame("functional.py", "scale", 2)});
  const ProgramBlock a = p.make(conv, 64_MiB);
  p.make(cast, 128_MiB);
  p.make(scale, 64_MiB);
  const ProgramBlock c = p.make(conv, 64_MiB);
  p.groups = {{a}};
  EXPECT_THAT(p.let_go({a}), ElementsAre(c));  // not when the cast is made
}

TEST(ScopesTest, WithoutLinesItIsTheEndOfTheCall) {
  Program p;
  const ProgramBlock a = p.make(0, 64_MiB);
  const ProgramBlock b = p.make(0, 64_MiB);
  p.groups = {{b}, {a}};
  EXPECT_THAT(p.let_go({a, b}), ElementsAre(b + 1, b + 1));
}

}  // namespace
}  // namespace vramlab
