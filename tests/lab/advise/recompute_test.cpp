// A recorded program with parts computed again in backward, against the same program really run so.
#include "recordings/lifetimes/recompute.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/advise/units.hpp"
#include "recordings/open.hpp"
#include "recordings/scripts/allocation_script.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const fs::path kPrograms = fs::path{VRAMLAB_SOURCE_DIR} / "../shared/data/programs-h200";

struct StepPeak {
  Bytes allocated = 0;
  Bytes reserved = 0;
};

/// By the name of its mark up to its time: of a step that comes twice the first.
std::map<std::string, StepPeak> step_peaks(ClientProgram program) {
  std::vector<ClientAction> actions;
  for (const ClientAction& action : program.actions) {
    actions.push_back(action);
    if (action.kind == ClientAction::Kind::mark) actions.push_back({.kind = ClientAction::Kind::reset_peak});
  }
  program.actions = std::move(actions);
  program.failures.clear();
  std::map<std::string, StepPeak> peaks;
  for (const MarkFigures& mark : replay_program(program, {.settings = program.settings}).marks) {
    peaks.try_emplace(mark.text.substr(0, mark.text.find(" ok")),
                      StepPeak{static_cast<Bytes>(mark.stats.allocated_bytes.all().peak),
                               static_cast<Bytes>(mark.stats.reserved_bytes.all().peak)});
  }
  return peaks;
}

double error(Bytes predicted, Bytes real) {
  return static_cast<double>(predicted) / static_cast<double>(real) - 1;
}

/// The steps that both have.
struct Agreement {
  std::size_t steps = 0;
  double allocated = 0;        ///< the largest error
  double reserved = 0;         ///< the largest error
  double middle_reserved = 0;  ///< the median
};

Agreement agreement(const ClientProgram& predicted, const ClientProgram& real) {
  Agreement found;
  std::vector<double> reserved;
  const auto ours = step_peaks(predicted);
  for (const auto& [name, peak] : step_peaks(real)) {
    const auto our = ours.find(name);
    if (our == ours.end() || name == "start" || name == "built") continue;
    ++found.steps;
    found.allocated = std::max(found.allocated, std::abs(error(our->second.allocated, peak.allocated)));
    reserved.push_back(std::abs(error(our->second.reserved, peak.reserved)));
  }
  std::ranges::sort(reserved);
  found.reserved = reserved.back();
  found.middle_reserved = reserved[reserved.size() / 2];
  return found;
}

ClientProgram recorded(const std::string& name) {
  return read_client_programs(kPrograms / (name + ".pickle.gz")).front();
}

ClientProgram with_layers(const ClientProgram& program, const std::string& which,
                          std::optional<std::uint32_t> every = {}) {
  return recomputed_program(program, {which}, every).program;
}

// The decoder of programs-h200 was recorded as it is, with every second layer and with every layer
// recomputed.
TEST(RecomputeTest, EverySecondLayerOfADecoderNeedsWhatItReallyNeeded) {
  if (!fs::exists(kPrograms)) GTEST_SKIP() << "no " << kPrograms;
  const ClientProgram predicted = with_layers(recorded("llama.stacks"), "modeling_llama.py:403", 2);
  const Agreement found = agreement(predicted, recorded("llama_half.stacks"));
  EXPECT_EQ(found.steps, 6U);
  EXPECT_LT(found.allocated, 0.01);
  EXPECT_LT(found.middle_reserved, 0.03);
  EXPECT_LT(found.reserved, 0.08);
}

// Recorded without stacks, 12 steps that did 32 parts of 2 rows in all (accum.marks.json), each through 12
// layers.
TEST(RecomputeTest, EveryPartOfABatchIsAPassOfItsOwn) {
  if (!fs::exists(kPrograms)) GTEST_SKIP() << "no " << kPrograms;
  const ClientProgram program = recorded("accum");
  const ModelCalls calls = calls_of(program, lifetimes_of(program), uses_of(program));
  EXPECT_EQ(calls.source, CallSource::structure);
  EXPECT_THAT(calls.passes, SizeIs(32));
  EXPECT_THAT(calls.calls, SizeIs(32 * 12));
}

const fs::path kRecomputed = fs::path{VRAMLAB_SOURCE_DIR} / "tests/data/recomputed";

ClientProgram fixture(const std::string& name) {
  return read_client_programs(kRecomputed / (name + ".pickle.gz")).front();
}

/// One of a fixture's programs, and the same really run with every so manieth of its units computed again.
struct Split {
  const char* none;
  const char* real;
  std::size_t units;
  std::size_t every;
};

class RecomputedFixture : public testing::TestWithParam<Split> {};

// tests/data/recomputed: recorded without and with recomputation on one card. By stacks, by names of modules
// that the recorder wrote (gpt2), and by annotations (small).
TEST_P(RecomputedFixture, NeedsWhatItReallyNeeded) {
  const auto [name, real, count, every] = GetParam();
  const ClientProgram none = fixture(name);
  const ModelParts parts = parts_of(none);
  std::vector<ModelUnit> units;  // layers, convolution blocks and bottlenecks, counted through
  const std::vector<ModelUnit> all = advised_units(parts);
  for (std::size_t i = 0; i < all.size(); i += every) units.push_back(all[i]);
  EXPECT_THAT(all, SizeIs(count));
  std::vector<TreatedCall> treated;
  for (const std::uint32_t call : outer_calls(parts, units))
    treated.push_back({&parts.memory[call], Treatment::recompute});
  const Agreement found = agreement(program_as_if(none, parts.lifetimes, treated), fixture(real));
  EXPECT_GE(found.steps, 2U);
  EXPECT_LT(found.allocated, 0.02);  // tails of 1 MiB count here
  EXPECT_LT(found.middle_reserved, 0.03);
  EXPECT_LT(found.reserved, 0.08);
}

INSTANTIATE_TEST_SUITE_P(
    RecomputeTest, RecomputedFixture,
    testing::Values(Split{"decoder.none", "decoder.every2", 4, 2}, Split{"decoder.none", "decoder.all", 4, 1},
                    Split{"unet.none", "unet.all", 7, 1}, Split{"resnet.none", "resnet.every2", 16, 2},
                    Split{"vit.none", "vit.every2", 8, 2}, Split{"vit.none", "vit.all", 8, 1},
                    Split{"gpt2.none", "gpt2.every2", 12, 2}, Split{"small.annotated", "small.all", 4, 1}),
    [](const auto& split) {
      std::string name = split.param.real;
      name[name.find('.')] = '_';
      return name;
    });

// What a module keeps in user_metadata names the same layers.
TEST(RecomputeTest, TakesTheWordsOfUserMetadataForNames) {
  const ModelParts parts = parts_of(fixture("small.metadata"));
  EXPECT_EQ(parts.calls.source, CallSource::annotations);
  const auto layers = named_units(parts, "model.layers", {}, "--recompute");
  EXPECT_THAT(layers, SizeIs(4));
  EXPECT_EQ(names_of(parts.calls.places, named_units(parts, "model.layers.2", {}, "--recompute")),
            "model.layers.* #2");
}

TEST(RecomputeTest, EveryLayerOfADecoderNeedsWhatItReallyNeeded) {
  if (!fs::exists(kPrograms)) GTEST_SKIP() << "no " << kPrograms;
  const ClientProgram real = recorded("llama_ckpt");
  // With stacks, and from the sizes alone.
  for (const auto& [name, layers] :
       {std::pair{"llama.stacks", "modeling_llama.py:403"}, std::pair{"llama", "layer"}}) {
    const Agreement found = agreement(with_layers(recorded(name), layers), real);
    EXPECT_GE(found.steps, 5U) << name;
    EXPECT_LT(found.allocated, 0.01) << name;
    EXPECT_LT(found.middle_reserved, 0.03) << name;
    EXPECT_LT(found.reserved, 0.08) << name;
  }
}

TEST(RecomputeTest, SplitsAreRankedAsTheyReallyWere) {
  if (!fs::exists(kPrograms)) GTEST_SKIP() << "no " << kPrograms;
  const ClientProgram none = recorded("llama.stacks");
  const std::vector<std::map<std::string, StepPeak>> predicted{
      step_peaks(none), step_peaks(with_layers(none, "modeling_llama.py:403", 2)),
      step_peaks(with_layers(none, "modeling_llama.py:403"))};
  const std::vector<std::map<std::string, StepPeak>> real{
      step_peaks(none), step_peaks(recorded("llama_half.stacks")), step_peaks(recorded("llama_ckpt"))};
  for (const char* step : {"b4 seq256", "b8 seq128", "b4 seq512", "b8 seq384", "b1 seq1024"}) {
    for (std::size_t i = 0; i + 1 < real.size(); ++i) {
      ASSERT_GT(real[i].at(step).allocated, real[i + 1].at(step).allocated) << step;
      EXPECT_GT(predicted[i].at(step).allocated, predicted[i + 1].at(step).allocated) << step;
    }
  }
}

TEST(RecomputeTest, NamesPlacesAndNumbersThatThereAre) {
  if (!fs::exists(kPrograms)) GTEST_SKIP() << "no " << kPrograms;
  const ModelParts parts = parts_of(recorded("llama.stacks"));
  EXPECT_THAT(advised_units(parts), SizeIs(12));
  const auto units = named_units(parts, "modeling_llama.py:403#1,8-10", {}, "--recompute");
  EXPECT_EQ(names_of(parts.calls.places, units), "modeling_llama.py:403 #1, #8-#10");
  const auto refusal = [&](const std::string& text) {
    try {
      named_units(parts, text, {}, "--recompute");
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_THAT(refusal("model.py:1"), HasSubstr("is no call of this program. It has "));
  EXPECT_THAT(refusal("modeling_llama.py:403#12"), HasSubstr("has no repeat #12. It has "));
  EXPECT_THAT(refusal("modeling_llama.py:403#1-"), HasSubstr("stand numbers of repeats"));
}

// Two layers of one line, each with a temporary, what it saves and its output; the second's output is what
// backward begins with. Stacks are not in scripts: the layers are the repeated sizes.
const char* const kTwoLayers =
    "alloc,weights,10MiB\n"
    "mark,,,,,built\n"
    "alloc,x,8MiB\n"
    "alloc,t0,6MiB\nalloc,s0,20MiB\nalloc,u0,4MiB\nfree,t0\nfree,u0\nalloc,y0,8MiB\nfree,x\n"
    "alloc,t1,6MiB\nalloc,s1,20MiB\nalloc,u1,4MiB\nfree,t1\nfree,u1\nalloc,y1,8MiB\nfree,y0\n"
    "alloc,loss,1MiB\nfree,y1\n"
    "alloc,d1,9MiB\nfree,s1\nalloc,d0,9MiB\nfree,s0\nfree,loss\nfree,d1\nfree,d0\nmark,,,,,step\n";

// python/vramlab/record.py writes names of modules as frames.
TEST(RecomputeTest, TakesNamesOfModulesWhereTheyWereRecorded) {
  ClientProgram program =
      parse_allocation_script(std::string{"op,id,bytes,stream,pool,text\n"} + kTwoLayers, "script");
  program.frames = {{"model", "Decoder", 0}, {"model.layers.0", "Layer", 0}, {"model.layers.1", "Layer", 0}};
  program.stacks = {{}, {0}, {1, 0}, {2, 0}};
  std::size_t number = 0;
  for (ClientAction& action : program.actions) {
    if (action.kind != ClientAction::Kind::alloc) continue;
    action.detail = number == 0 || number > 10 ? 0 : number == 1 || number == 10 ? 1 : number < 6 ? 2 : 3;
    ++number;
  }
  const ModelParts parts = parts_of(program);
  EXPECT_THAT(parts.calls.places, ElementsAre("model", "model.layers.*"));
  for (const char* name : {"model.layers", "model.layers.*"})
    EXPECT_THAT(named_units(parts, name, {}, "--recompute"), SizeIs(2)) << name;
  const auto one = named_units(parts, "model.layers.1", {}, "--recompute");
  EXPECT_EQ(names_of(parts.calls.places, one), "model.layers.* #1");
  EXPECT_THAT(parts.memory[one.front().calls.front()].saved, ElementsAre(7));  // s1
}

// What a call is and keeps, given by hand.
TEST(RecomputeTest, RunsAgainUpToTheLastSavedBlockBeforeItsBackward) {
  const ClientProgram program =
      parse_allocation_script(std::string{"op,id,bytes,stream,pool,text\n"} + kTwoLayers, "script");
  ModelCalls calls;
  calls.places = {"layer"};
  const auto alloc = [&](std::size_t number) {
    std::size_t seen = 0;
    for (std::size_t i = 0; i < program.actions.size(); ++i) {
      if (program.actions[i].kind == ClientAction::Kind::alloc && seen++ == number) return i;
    }
    return program.actions.size();
  };
  const std::size_t backward = alloc(11);  // d1
  calls.passes = {{alloc(1), backward, program.actions.size()}};
  calls.calls = {{.place = 0, .number = 0, .begin = alloc(2), .end = alloc(6)},
                 {.place = 0, .number = 1, .begin = alloc(6), .end = alloc(10)}};
  const std::vector<Lifetime> lifetimes = lifetimes_of(program);
  const auto memory = memory_of_calls(program, lifetimes, uses_of(program), calls);
  ASSERT_THAT(memory, SizeIs(2));
  EXPECT_THAT(memory[0].saved, ElementsAre(3));   // s0
  EXPECT_THAT(memory[0].inputs, ElementsAre(1));  // x
  EXPECT_EQ(memory[0].bytes, 20_MiB);
  EXPECT_EQ(memory[0].input_bytes, 8_MiB);
  EXPECT_EQ(memory[0].written, 26_MiB);  // t0 and s0: what comes behind the last saved block is not run again
  EXPECT_EQ(memory[0].most, 26_MiB);
  EXPECT_EQ(memory[0].again, alloc(12));
  EXPECT_THAT(memory[1].saved, ElementsAre(7));   // s1
  EXPECT_THAT(memory[1].inputs, ElementsAre(5));  // y0
  EXPECT_EQ(memory[1].again, alloc(11));

  const ClientProgram other = program_as_if(
      program, lifetimes, {{&memory[0], Treatment::recompute}, {&memory[1], Treatment::recompute}});
  // As recorded most is held at the end of the second layer: weights, s0, y0, t1, s1, u1. With both layers
  // again, in the backward of the first: weights, x, loss, d1, s0, d0.
  EXPECT_EQ(replay_program(program, {}).highest_allocated, (10 + 20 + 8 + 6 + 20 + 4) * 1_MiB);
  EXPECT_EQ(replay_program(other, {}).highest_allocated, (10 + 8 + 1 + 9 + 20 + 9) * 1_MiB);
  EXPECT_EQ(other.blocks, program.blocks + 4);  // t0, s0, t1, s1

  // s0 is away until the operation that frees it: weights, loss, d1, s0, d0.
  const ClientProgram host = program_as_if(program, lifetimes, {{&memory[0], Treatment::offload}});
  EXPECT_EQ(host.blocks, program.blocks + 1);
  EXPECT_EQ(replay_program(host, {}).highest_allocated, (10 + 1 + 9 + 20 + 9) * 1_MiB);
}

}  // namespace
}  // namespace vramlab
