// Verdicts on real recordings of one decoder, unchanged and with one change each, and on changes made here.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/judge/judgement.hpp"
#include "lab/judge/view.hpp"
#include "recordings/open.hpp"
#include "recordings/scripts/allocation_script.hpp"
#include "recordings/snapshot/stack_groups.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = ClientAction::Kind;

const fs::path kData = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data/judge";
const fs::path kShared = fs::path(VRAMLAB_SOURCE_DIR) / "../shared/data";

const ClientProgram& decoder() {
  static const ClientProgram program = read_client_programs(kData / "decoder.pickle.gz").front();
  return program;
}

Judgement judged(const ClientProgram& golden, const ClientProgram& now, JudgeQuestion question = {}) {
  return judge(golden, now, question);
}

// --- Real recordings; the bytes are the differences of PyTorch's own peak counters in their truth files ---

struct RealChange {
  const char* file;
  Verdict verdict;
  BlameKind kind;
  const char* where;
  std::int64_t allocated;
  std::int64_t reserved;
};

class RealChangeTest : public testing::TestWithParam<RealChange> {};

TEST_P(RealChangeTest, IsBlamedWithItsBytes) {
  const RealChange& change = GetParam();
  const fs::path folder = kShared / "judge";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not here";
  const auto golden = read_client_programs(folder / "base1.pickle.gz").front();
  const auto now = read_client_programs(folder / (std::string(change.file) + ".pickle.gz")).front();
  const Judgement there = judged(golden, now);
  EXPECT_EQ(there.verdict, change.verdict);
  EXPECT_EQ(there.delta_allocated(), change.allocated);
  EXPECT_EQ(there.delta_reserved(), change.reserved);
  ASSERT_THAT(there.blame, SizeIs(1));
  EXPECT_EQ(there.blame[0].kind, change.kind);
  EXPECT_THAT(there.blame[0].where, HasSubstr(change.where));
  EXPECT_EQ(there.blame[0].allocated, change.allocated);
  EXPECT_EQ(there.blame[0].reserved, change.reserved);
  EXPECT_THAT(there.steps, SizeIs(8));
  EXPECT_EQ(there.holds(), change.reserved <= 0);

  const Judgement back = judged(now, golden);
  EXPECT_EQ(back.verdict, change.verdict);
  EXPECT_EQ(back.delta_reserved(), -change.reserved);
  ASSERT_THAT(back.blame, SizeIs(1));
  EXPECT_EQ(back.blame[0].kind, change.kind);
}

INSTANTIATE_TEST_SUITE_P(Decoder, RealChangeTest,
                         testing::Values(RealChange{"layers13", Verdict::program, BlameKind::more_layers,
                                                    "modeling_llama.py", 701'976'064, 717'225'984},
                                         RealChange{"leak", Verdict::program, BlameKind::leak, "judge.py:22",
                                                    5'242'880, 6'291'456},
                                         RealChange{"batch5", Verdict::program, BlameKind::larger_input,
                                                    "judge.py:21", 172'776'448, 232'783'872},
                                         RealChange{"recomputed", Verdict::program, BlameKind::recomputation,
                                                    "judge.py:16", -175'933'440, -182'452'224},
                                         RealChange{"stream", Verdict::program, BlameKind::stream,
                                                    "judge.py:26", 0, 20'971'520},
                                         RealChange{"conf_pow4", Verdict::settings, BlameKind::setting,
                                                    "roundup_power2_divisions", 48'236'032, 37'748'736}),
                         [](const auto& one) { return std::string(one.param.file); });

// Other changes of the same decoder, recorded on a card for this; the bytes are again those of PyTorch's
// counters.
TEST(JudgeTest, FurtherChangesAreBlamed) {
  const auto read = [](const char* name) {
    return read_client_programs(kData / "changes" / (std::string(name) + ".pickle.gz")).front();
  };
  const ClientProgram golden = read("base");
  for (const auto& [file, verdict, kind, where, allocated, reserved] :
       {RealChange{"fp32", Verdict::program, BlameKind::dtype, "more.py:11", 1'759'182'848, 1'608'515'584},
        {"foreach", Verdict::program, BlameKind::optimizer, "more.py:46", 485'888, -12'582'912},
        {"eager", Verdict::program, BlameKind::other, "modeling_llama.py:268", 239'067'136, 230'686'720},
        {"leak_every2", Verdict::program, BlameKind::leak, "more.py:39", 12'058'624, 132'120'576}}) {
    SCOPED_TRACE(file);
    const Judgement there = judged(golden, read(file));
    EXPECT_EQ(there.verdict, verdict);
    EXPECT_EQ(there.delta_allocated(), allocated);
    EXPECT_EQ(there.delta_reserved(), reserved);
    ASSERT_THAT(there.blame, Not(IsEmpty()));
    EXPECT_EQ(there.blame[0].kind, kind);
    EXPECT_THAT(there.blame[0].where, HasSubstr(where));
    for (const Blame& one : there.blame) EXPECT_NE(one.kind, BlameKind::recomputation);
  }
}

TEST(JudgeTest, WhatIsAllowedOfAStepThatIsNotThereIsSaid) {
  JudgeQuestion question;
  question.allowed = {parse_allowed_bytes("reserved@99=1MiB", "--allow-bytes")};
  const Judgement judgement = judged(decoder(), decoder(), question);
  EXPECT_THAT(judgement.notes,
              testing::Contains("What is allowed of step 99 counts for nothing: 8 steps were judged."));
}

TEST(JudgeTest, RepeatsOfAnUnchangedProgramNeverAlarm) {
  const fs::path folder = kShared / "judge";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not here";
  const auto first = read_client_programs(folder / "base1.pickle.gz").front();
  const auto second = read_client_programs(folder / "base2.pickle.gz").front();
  for (const auto& [golden, now] : {std::pair{&first, &second}, std::pair{&second, &first}}) {
    const Judgement judgement = judged(*golden, *now);
    EXPECT_EQ(judgement.verdict, Verdict::same);
    EXPECT_TRUE(judgement.holds());
    EXPECT_THAT(judgement.blame, IsEmpty());
  }
}

// Layers 0, 2, … of twelve recomputed.
TEST(JudgeTest, RecomputationOfEverySecondRepeatIsNamed) {
  const fs::path folder = kShared / "programs-h200";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not here";
  const auto whole = read_client_programs(folder / "llama.stacks.pickle.gz").front();
  const auto half = read_client_programs(folder / "llama_half.stacks.pickle.gz").front();
  const Judgement judgement = judged(whole, half);
  ASSERT_THAT(judgement.blame, SizeIs(1));
  EXPECT_EQ(judgement.blame[0].kind, BlameKind::recomputation);
  EXPECT_THAT(judgement.blame[0].what, HasSubstr("6 of 12 repeats"));
  EXPECT_THAT(judgement.blame[0].what, HasSubstr("every second one from 1"));
}

// --- Changes made to the recorded decoder, action by action ---

/// A copy of a program that is written anew.
class Rewriter {
 public:
  explicit Rewriter(const ClientProgram& program) : read_(program), made_(program), next_(program.blocks) {
    made_.actions.clear();
  }

  [[nodiscard]] const ReadProgram& read() const { return read_; }
  [[nodiscard]] std::size_t step_of(std::size_t action) const { return read_.steps.stretch_of(action); }
  [[nodiscard]] Category use(const ClientAction& alloc) const {
    return read_.uses.blocks[alloc.block].category;
  }
  [[nodiscard]] bool born_at(const ClientAction& action, const std::string& line) const {
    const StackId stack = read_.lifetimes[action.block].stack;
    return shown_frames(read_.program.frames, read_.program.stacks[stack]).front().starts_with(line);
  }

  void keep(ClientAction action) { made_.actions.push_back(action); }
  ProgramBlock alloc(Bytes bytes, std::uint32_t stack) {
    keep({.bytes = bytes, .block = next_, .detail = stack, .kind = Kind::alloc});
    return next_++;
  }
  void free(ProgramBlock block) { keep({.block = block, .kind = Kind::free}); }

  /// `each(place, action)` for every action.
  ClientProgram write(const std::function<void(std::size_t, const ClientAction&)>& each) {
    for (std::size_t i = 0; i < read_.program.actions.size(); ++i) each(i, read_.program.actions[i]);
    return finish();
  }

  ClientProgram finish() {
    std::map<ProgramBlock, ProgramBlock> numbers;
    for (ClientAction& action : made_.actions) {
      if (action.kind == Kind::alloc) {
        const auto number = static_cast<ProgramBlock>(numbers.size());
        numbers[action.block] = number;
      }
      if (action.kind == Kind::alloc || action.kind == Kind::free) action.block = numbers.at(action.block);
    }
    made_.blocks = static_cast<ProgramBlock>(numbers.size());
    return std::move(made_);
  }

  /// A stack of one frame: "train.py:7 forward", or that of a block made there.
  std::uint32_t stack_of(const std::string& line) {
    for (const ClientAction& action : read_.program.actions) {
      if (action.kind == Kind::alloc && action.detail != 0 && born_at(action, line)) return action.detail;
    }
    const std::size_t colon = line.find(':');
    const std::size_t space = line.find(' ');
    made_.frames.push_back(
        {line.substr(space + 1), line.substr(0, colon), std::stoll(line.substr(colon + 1))});
    made_.stacks.push_back({static_cast<std::uint32_t>(made_.frames.size() - 1)});
    return static_cast<std::uint32_t>(made_.stacks.size() - 1);
  }

 private:
  ReadProgram read_;
  ClientProgram made_;
  ProgramBlock next_;
};

bool is_large(const ClientAction& action) { return action.bytes > 4096; }

/// Every size of a step, but the weights', times `ratio`.
ClientProgram scaled(Bytes numerator, Bytes denominator) {
  Rewriter rewriter(decoder());
  return rewriter.write([&](std::size_t i, ClientAction action) {
    const bool scales = action.kind == Kind::alloc && rewriter.step_of(i) > 0 && is_large(action) &&
                        rewriter.use(action) != Category::gradients &&
                        rewriter.use(action) != Category::optimizer_state &&
                        !rewriter.read().lifetimes[action.block].outlives(rewriter.read().program);
    if (scales) action.bytes = action.bytes * numerator / denominator;
    rewriter.keep(action);
  });
}

const Blame& only_blame(const Judgement& judgement) {
  if (std::getenv("SHOW")) std::puts(judgements_markdown({}, {judgement}).c_str());
  static const Blame none;
  EXPECT_THAT(judgement.blame, SizeIs(1)) << judgements_markdown({}, {judgement});
  return judgement.blame.empty() ? none : judgement.blame.front();
}

TEST(JudgeTest, LongerSequencesAreALargerInput) {
  const Blame blame = only_blame(judged(decoder(), scaled(3, 2)));
  EXPECT_EQ(blame.kind, BlameKind::larger_input);
  EXPECT_EQ(blame.first_step, 1U);
  const Judgement back = judged(scaled(3, 2), decoder());
  EXPECT_EQ(only_blame(back).kind, BlameKind::larger_input);
  EXPECT_LT(back.delta_reserved(), 0);
}

// Weights as they came to the card are not converted, and everything is twice as large.
TEST(JudgeTest, SinglePrecisionIsAnotherDtype) {
  Rewriter rewriter(decoder());
  const ReadProgram& read = rewriter.read();
  const ClientProgram single = rewriter.write([&](std::size_t i, ClientAction action) {
    const bool built = rewriter.step_of(i) == 0;
    if (action.kind == Kind::alloc || action.kind == Kind::free) {
      const bool converted = read.uses.blocks[action.block].category == Category::weights;
      if (converted || (built && action.kind == Kind::free)) return;
    }
    const bool whole_numbers =
        action.kind == Kind::alloc && (rewriter.born_at(action, "judge.py:21") ||
                                       read.uses.blocks[action.block].category == Category::workspaces);
    const bool of_weights = action.kind == Kind::alloc && (rewriter.use(action) == Category::gradients ||
                                                           rewriter.use(action) == Category::optimizer_state);
    if (action.kind == Kind::alloc && !built && !whole_numbers && action.bytes > 4 &&
        (of_weights || is_large(action)))
      action.bytes *= 2;
    rewriter.keep(action);
  });
  const Blame blame = only_blame(judged(decoder(), single));
  EXPECT_EQ(blame.kind, BlameKind::dtype);
  EXPECT_EQ(blame.first_step, 0U);
  EXPECT_EQ(only_blame(judged(single, decoder())).kind, BlameKind::dtype);
}

TEST(JudgeTest, AnOptimizerWithoutStateIsTheOptimizer) {
  Rewriter rewriter(decoder());
  const ClientProgram plain = rewriter.write([&](std::size_t, const ClientAction& action) {
    const bool of_block = action.kind == Kind::alloc || action.kind == Kind::free;
    if (of_block && rewriter.use(action) == Category::optimizer_state) return;
    rewriter.keep(action);
  });
  const Blame blame = only_blame(judged(decoder(), plain));
  EXPECT_EQ(blame.kind, BlameKind::optimizer);
  EXPECT_THAT(blame.where, HasSubstr("judge.py:30"));
  EXPECT_LT(blame.reserved, -500'000'000);
  EXPECT_EQ(only_blame(judged(plain, decoder())).kind, BlameKind::optimizer);
}

// What an optimizer that takes all weights at once needs between.
TEST(JudgeTest, TemporariesOfTheOptimizerAreTheOptimizer) {
  Rewriter rewriter(decoder());
  const ReadProgram& read = rewriter.read();
  std::uint32_t stack = 0;
  for (ProgramBlock block = 0; block < read.program.blocks; ++block) {
    if (read.uses.blocks[block].category == Category::optimizer_state) stack = read.lifetimes[block].stack;
  }
  const ClientProgram together = rewriter.write([&](std::size_t i, const ClientAction& action) {
    if (action.kind == Kind::mark && rewriter.step_of(i) > 0) {
      std::vector<ProgramBlock> made;
      for (ProgramBlock block = 0; block < read.program.blocks; ++block) {
        if (read.uses.blocks[block].category != Category::weights) continue;
        made.push_back(rewriter.alloc(read.lifetimes[block].requested, stack));
      }
      for (const ProgramBlock block : made) rewriter.free(block);
    }
    rewriter.keep(action);
  });
  ASSERT_NE(stack, 0U);
  EXPECT_EQ(only_blame(judged(decoder(), together)).kind, BlameKind::optimizer);
}

TEST(JudgeTest, LogitsThatLiveIntoTheNextStepAreALateFree) {
  Rewriter rewriter(decoder());
  std::optional<ProgramBlock> held;
  const ClientProgram late = rewriter.write([&](std::size_t, const ClientAction& action) {
    const bool logits = action.kind != Kind::mark && rewriter.born_at(action, "modeling_llama.py:480");
    if (logits && action.kind == Kind::free) {
      held = action.block;
      return;
    }
    rewriter.keep(action);
    if (logits && action.kind == Kind::alloc && held) rewriter.free(*held);
  });
  const Blame blame = only_blame(judged(decoder(), late));
  EXPECT_EQ(blame.kind, BlameKind::late_free);
  EXPECT_THAT(blame.where, HasSubstr("modeling_llama.py:480"));
  EXPECT_GT(blame.allocated, 0);
  EXPECT_EQ(only_blame(judged(late, decoder())).kind, BlameKind::late_free);
}

// zero_grad(set_to_none=False): the first step's gradients stay, later ones are added to them at once.
TEST(JudgeTest, GradientsThatStayAreALateFree) {
  Rewriter rewriter(decoder());
  const ReadProgram& read = rewriter.read();
  const ClientProgram stay = rewriter.write([&](std::size_t i, const ClientAction& action) {
    const bool gradient = action.kind != Kind::mark && rewriter.use(action) == Category::gradients;
    if (gradient && action.kind == Kind::free) return;
    rewriter.keep(action);
    if (gradient && rewriter.step_of(i) > 1) rewriter.free(action.block);
  });
  const Blame blame = only_blame(judged(decoder(), stay));
  EXPECT_EQ(blame.kind, BlameKind::late_free);
  EXPECT_THAT(blame.where, HasSubstr("gradients"));
  ASSERT_EQ(read.steps.count(), 8U);
}

TEST(JudgeTest, ALossThatIsKeptIsALeakOfItsBlock) {
  Rewriter rewriter(decoder());
  const ClientProgram kept = rewriter.write([&](std::size_t, const ClientAction& action) {
    const bool loss = action.kind == Kind::free && rewriter.born_at(action, "modeling_llama.py:484") &&
                      rewriter.read().lifetimes[action.block].requested == 4;
    if (!loss) rewriter.keep(action);
  });
  const Blame blame = only_blame(judged(decoder(), kept));
  EXPECT_EQ(blame.kind, BlameKind::leak);
  EXPECT_THAT(blame.where, HasSubstr("modeling_llama.py:484"));
}

TEST(JudgeTest, ACacheEmptiedEveryStepIsSaid) {
  Rewriter rewriter(decoder());
  const ClientProgram emptied = rewriter.write([&](std::size_t i, const ClientAction& action) {
    if (action.kind == Kind::mark && rewriter.step_of(i) > 0) rewriter.keep({.kind = Kind::empty_cache});
    rewriter.keep(action);
  });
  const Blame blame = only_blame(judged(decoder(), emptied));
  EXPECT_EQ(blame.kind, BlameKind::other);
  EXPECT_THAT(blame.where, HasSubstr("empty_cache"));
  EXPECT_THAT(blame.what, HasSubstr("8 only in the new"));
}

// CUBLAS_WORKSPACE_CONFIG=:4096:2 where the card's own is 32 MiB.
TEST(JudgeTest, AnotherWorkspaceIsAWorkspace) {
  Rewriter rewriter(decoder());
  std::size_t changed = 0;
  const ClientProgram small = rewriter.write([&](std::size_t, ClientAction action) {
    if (action.kind == Kind::alloc && rewriter.use(action) == Category::workspaces &&
        action.bytes == 32_MiB) {
      action.bytes = 8_MiB;
      ++changed;
    }
    rewriter.keep(action);
  });
  ASSERT_GT(changed, 0U);
  const Blame blame = only_blame(judged(decoder(), small));
  EXPECT_EQ(blame.kind, BlameKind::workspace);
  EXPECT_LT(blame.allocated, 0);
  EXPECT_EQ(only_blame(judged(small, decoder())).kind, BlameKind::workspace);
}

TEST(JudgeTest, NewPlacesAreNamedOneByOne) {
  Rewriter rewriter(decoder());
  std::map<ProgramBlock, ProgramBlock> masks;
  const ClientProgram dropped = rewriter.write([&](std::size_t, const ClientAction& action) {
    rewriter.keep(action);
    const bool activation = action.kind != Kind::mark && rewriter.born_at(action, "activations.py:103");
    if (activation && action.kind == Kind::alloc)
      masks[action.block] = rewriter.alloc(action.bytes / 2, rewriter.stack_of("dropout.py:70 forward"));
    if (activation && action.kind == Kind::free) rewriter.free(masks.at(action.block));
  });
  const Blame blame = only_blame(judged(decoder(), dropped));
  EXPECT_EQ(blame.kind, BlameKind::other);
  EXPECT_THAT(blame.where, HasSubstr("dropout.py:70 forward"));
  EXPECT_GT(blame.reserved, 0);
}

// Two passes of half the batch before the optimizer steps.
TEST(JudgeTest, AccumulatedGradientsAreMorePasses) {
  const ReadProgram read(decoder());
  Rewriter rewriter(decoder());
  std::size_t copied = 0;
  const auto half = [&](ClientAction action) {
    const bool scales = action.kind == Kind::alloc && is_large(action) &&
                        rewriter.use(action) != Category::gradients &&
                        rewriter.use(action) != Category::optimizer_state;
    if (scales) action.bytes /= 2;
    return action;
  };
  ProgramBlock next = decoder().blocks + 100'000;
  for (std::size_t i = 0; i < read.program.actions.size(); ++i) {
    const std::size_t step = read.steps.stretch_of(i);
    if (step > 1 && step <= 8 && i == read.steps.begin_of(step)) {
      std::map<ProgramBlock, ProgramBlock> copies;
      for (std::size_t k = i; k < read.steps.ends[step]; ++k) {
        ClientAction action = half(read.program.actions[k]);
        if (action.kind == Kind::mark) continue;
        const Lifetime& one = read.lifetimes[action.block];
        if (one.born < i || one.freed >= read.steps.ends[step]) continue;
        if (action.kind == Kind::alloc) copies[action.block] = next++;
        action.block = copies.at(action.block);
        rewriter.keep(action);
        ++copied;
      }
    }
    rewriter.keep(step > 1 ? half(read.program.actions[i]) : read.program.actions[i]);
  }
  ASSERT_GT(copied, 0U);
  const Judgement judgement = judged(decoder(), rewriter.finish());
  const auto passes = std::ranges::find_if(judgement.blame, [](const Blame& blame) {
    return blame.what.find("2 passes a step for 1") != std::string::npos;
  });
  const auto noted = std::ranges::find_if(judgement.notes, [](const std::string& note) {
    return note.find("2 passes a step for 1") != std::string::npos;
  });
  EXPECT_TRUE(passes != judgement.blame.end() || noted != judgement.notes.end());
  EXPECT_TRUE(std::ranges::any_of(judgement.blame,
                                  [](const Blame& blame) { return blame.kind == BlameKind::larger_input; }));
}

TEST(JudgeTest, FreesInAnotherOrderMeanNothing) {
  Rewriter rewriter(decoder());
  std::optional<ClientAction> before;
  ClientProgram swapped = rewriter.write([&](std::size_t, const ClientAction& action) {
    const bool swaps = before && before->kind == Kind::free && action.kind == Kind::free;
    if (swaps) {
      rewriter.keep(action);
      rewriter.keep(*before);
      before.reset();
      return;
    }
    if (before) rewriter.keep(*before);
    before = action;
  });
  if (before) swapped.actions.push_back(*before);
  const Judgement judgement = judged(decoder(), swapped);
  EXPECT_EQ(judgement.verdict, Verdict::same);
  EXPECT_TRUE(judgement.holds());
}

TEST(JudgeTest, EachSettingIsBlamedForItsOwnBytes) {
  ClientProgram other = decoder();
  other.settings =
      parse_allocator_settings("expandable_segments:True,garbage_collection_threshold:0.8", other.settings);
  const Judgement judgement = judged(decoder(), other);
  EXPECT_EQ(judgement.verdict, Verdict::settings);
  ASSERT_THAT(judgement.blame, SizeIs(2));
  EXPECT_EQ(judgement.blame[0].where, "expandable_segments");
  EXPECT_EQ(judgement.blame[0].what, "False -> True");
  EXPECT_EQ(judgement.blame[0].reserved, judgement.delta_reserved());
  EXPECT_EQ(judgement.blame[1].where, "garbage_collection_threshold");
  EXPECT_EQ(judgement.blame[1].reserved, 0);
}

TEST(JudgeTest, AnotherPyTorchsRulesAreAVersion) {
  ClientProgram older = decoder();
  older.settings.torch = {2, 4};
  EXPECT_EQ(judged(decoder(), older).verdict, Verdict::version);
}

TEST(JudgeTest, SegmentsThatNothingExplainsDisagree) {
  ClientProgram other = decoder();
  other.segments.pop_back();
  const Judgement judgement = judged(decoder(), other);
  EXPECT_EQ(judgement.verdict, Verdict::files_disagree);
  EXPECT_FALSE(judgement.holds());
  EXPECT_THAT(judgement.reason, HasSubstr("vramlab verify"));
}

// --- What may grow ---

TEST(JudgeTest, GrowthWithinWhatIsAllowedHolds) {
  const auto golden = read_client_programs(kData / "decoder.pickle.gz").front();
  const auto leaking = read_client_programs(kData / "decoder_leak.pickle.gz").front();
  EXPECT_FALSE(judged(golden, leaking).holds());
  const auto allowed = [&](const char* bytes) {
    return judged(golden, leaking, {.allowed = {parse_allowed_bytes(bytes, "--allow-bytes")}}).holds();
  };
  EXPECT_TRUE(allowed("256MiB"));
  EXPECT_FALSE(allowed("1MiB"));
  EXPECT_FALSE(allowed("reserved=256MiB"));
  EXPECT_FALSE(allowed("allocated@8=256MiB"));
  EXPECT_TRUE(judged(golden, leaking, {.allowed = {parse_allowed_share("10%", "--allow-share")}}).holds());
  EXPECT_THROW(parse_allowed_bytes("peak=1MiB", "--allow-bytes"), InputError);
  EXPECT_THROW(parse_allowed_bytes("reserved@0=1MiB", "--allow-bytes"), InputError);
  EXPECT_THROW(parse_allowed_share("150%", "--allow-share"), InputError);
}

TEST(JudgeTest, ACardThatNoLongerHoldsTheProgramBreaksIt) {
  const auto golden = read_client_programs(kData / "decoder.pickle.gz").front();
  const auto leaking = read_client_programs(kData / "decoder_leak.pickle.gz").front();
  WhatIfCard card{.name = "tight", .gpu = "", .capacity = kContextBytes + 2'227'175'424};  // the golden peak
  card.context_given = true;
  const Judgement judgement =
      judged(golden, leaking, {.allowed = {parse_allowed_bytes("1GiB", "")}, .cards = {card}});
  ASSERT_THAT(judgement.cards, SizeIs(1));
  EXPECT_TRUE(judgement.cards[0].golden_fits);
  EXPECT_EQ(judgement.holds(), judgement.cards[0].new_fits);
}

// --- Bad input ---

TEST(JudgeTest, WithoutStacksSizesAndOrderTell) {
  ClientProgram bare = decoder();
  bare.stacks = {{}};
  bare.frames.clear();
  for (ClientAction& action : bare.actions) {
    if (action.kind == Kind::alloc) action.detail = 0;
  }
  const Judgement judgement = judged(decoder(), bare);
  EXPECT_EQ(judgement.verdict, Verdict::same);
  EXPECT_THAT(judgement.notes, testing::Contains(HasSubstr("holds no stacks")));
}

TEST(JudgeTest, OnlyCommonStepsAreJudged) {
  const ReadProgram read(decoder());
  const Judgement judgement = judged(decoder(), first_steps(read.program, read.steps, 5));
  EXPECT_EQ(judgement.verdict, Verdict::same);
  EXPECT_THAT(judgement.steps, SizeIs(5));
  EXPECT_THAT(judgement.notes, testing::Contains(HasSubstr("the first 5 are judged")));
}

TEST(JudgeTest, AFileWithoutAHistoryIsNotVouchedFor) {
  ClientProgram held = decoder();
  held.has_history = false;
  const Judgement judgement = judged(decoder(), held);
  EXPECT_EQ(judgement.verdict, Verdict::files_disagree);
  EXPECT_FALSE(judgement.holds());
}

// --- One recording ---

TEST(JudgeTest, TheLeakOfOneRecordingIsFoundWithItsLine) {
  const auto leaking = read_client_programs(kData / "decoder_leak.pickle.gz").front();
  const LeakReport report = hunt_leaks(leaking, std::nullopt);
  ASSERT_THAT(report.leaks, SizeIs(1));
  EXPECT_EQ(report.leaks[0].where, "judge.py:22 <module>");
  EXPECT_EQ(report.leaks[0].per_step, 1_MiB);
  EXPECT_EQ(report.leaks[0].steps, 8U);
  EXPECT_EQ(report.leaks[0].first_step, 1U);
  EXPECT_THAT(hunt_leaks(decoder(), std::nullopt).leaks, IsEmpty());
}

// Small enough that the replay itself comes to the end: 20 MiB a step, and 1 GiB for the allocator.
TEST(JudgeTest, TheStepInWhichTheCardIsFullIsReplayed) {
  std::string lines = "alloc,w,100MiB,\nmark,,,,,built\n";
  for (int i = 0; i < 4; ++i) {
    lines += "alloc,a" + std::to_string(i) + ",50MiB,\nalloc,l" + std::to_string(i) + ",20MiB,\nfree,a" +
             std::to_string(i) + ",\nmark,,,,,step\n";
  }
  const ClientProgram program = parse_allocation_script("op,id,bytes,stream,pool,text\n" + lines, "script");
  WhatIfCard card{.name = "a card", .gpu = "", .capacity = 1_GiB + kContextBytes};
  const LeakReport report = hunt_leaks(program, card);
  ASSERT_THAT(report.leaks, SizeIs(1));
  EXPECT_EQ(report.leaks[0].per_step, 20_MiB);
  ASSERT_TRUE(report.forecast.full_at);
  EXPECT_FALSE(report.forecast.extrapolated);
  // 100 MiB of weights, 50 MiB that every step uses again, and 20 MiB for each step: the 44th is the first
  // that needs more than 1,024 MiB.
  EXPECT_EQ(*report.forecast.full_at, 44U);
}

}  // namespace
}  // namespace vramlab
