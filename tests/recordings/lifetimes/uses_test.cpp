// What the blocks of a program were for, held against what the parameters of known programs come to.
#include "recordings/lifetimes/uses.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "recordings/open.hpp"
#include "recordings/scripts/allocation_script.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using Kind = ClientAction::Kind;

/// A recorded program whose parameters are known. Counts are sums over its layers; `state` is copies of the
/// weights that its optimizer keeps (Adam: two moments, in the precision of the weights; SGD: momentum).
struct KnownProgram {
  const char* file;
  Bytes parameters;
  Bytes element;  ///< bytes of one
  Bytes state;
};

// gpt2: 50,257·768 + 1,024·768 + 12·(12·768² + 13·768) + 2·768, output tied to the embedding.
constexpr Bytes kGpt2 = 124'439'808;
// bert: (30,522 + 512 + 2 + 2)·768 + 12·(12·768² + 13·768) + 768² + 3·768 + 30,522, decoder tied.
constexpr Bytes kBert = 109'514'298;
// ResNet-50 as its paper has it, with 1,000 classes.
constexpr Bytes kResnet = 25'557'032;
// lstm: 20,000·512 + 4·1,024·(512 + 1,024 + 2) + 4·1,024·(1,024 + 1,024 + 2) + 1,024·20,000 + 20,000.
constexpr Bytes kLstm = 45'436'448;
// super-resolution: 18·(9·32·(64 + 96 + 128 + 160) + 9·64·192 + 4·32 + 64) + 1,792 + 2·36,928 + 1,731.
constexpr Bytes kSuperResolution = 4'393'923;
// vit_small 21,665,664, decoder 18,048·512 + 8·(12·512² + 13·512) + 2·512, projection 384·512 + 512.
constexpr Bytes kHetero = 56'323'456;
// decoder, 16 key-value heads: 2·32,000·1,024 + 12·(4·1,024² + 3·1,024·2,816 + 2·1,024) + 1,024.
constexpr Bytes kGenerate = 219'702'272;
// the same with 4 of them: 2·32,000·1,024 + 12·(2.5·1,024² + 3·1,024·2,816 + 2·1,024) + 1,024.
constexpr Bytes kLlama = 200'827'904;
constexpr Bytes kLayer = 11'274'240;  // one of its layers
constexpr Bytes kJudge = kLlama - 4 * kLayer;
constexpr Bytes kVit = 26'330'600;  // as the data's own list has it

constexpr std::array kPrograms{KnownProgram{"recorded/bert", kBert, 4, 2},
                               KnownProgram{"recorded/bert_fit", kBert, 4, 2},
                               KnownProgram{"recorded/generate", kGenerate, 2, 0},
                               KnownProgram{"recorded/generate_fit", kGenerate, 2, 0},
                               KnownProgram{"recorded/gpt2_cap.cap", kGpt2, 4, 2},
                               KnownProgram{"recorded/gpt2_cap.cap_combo", kGpt2, 4, 2},
                               KnownProgram{"recorded/gpt2_ckpt", kGpt2, 4, 2},
                               KnownProgram{"recorded/gpt2_fit", kGpt2, 4, 2},
                               KnownProgram{"recorded/gpt2_var", kGpt2, 4, 2},
                               KnownProgram{"recorded/gpt2_var.expand", kGpt2, 4, 2},
                               KnownProgram{"recorded/hetero", kHetero, 4, 2},
                               KnownProgram{"recorded/hetero_fit", kHetero, 4, 2},
                               KnownProgram{"recorded/lstm", kLstm, 4, 2},
                               KnownProgram{"recorded/lstm_fit", kLstm, 4, 2},
                               KnownProgram{"recorded/resnet", kResnet, 4, 1},
                               KnownProgram{"recorded/resnet.stacks", kResnet, 4, 1},
                               KnownProgram{"recorded/resnet_fit", kResnet, 4, 1},
                               KnownProgram{"recorded/sr_cap.cap4g", kSuperResolution, 4, 2},
                               KnownProgram{"recorded/sr_cap.cap4g_expand", kSuperResolution, 4, 2},
                               KnownProgram{"recorded/sr_dual", kSuperResolution, 4, 2},
                               KnownProgram{"recorded/sr_dual.expand", kSuperResolution, 4, 2},
                               KnownProgram{"programs-h200/accum", kLlama, 2, 2},
                               KnownProgram{"programs-h200/ddp_w1.rank0", kLlama, 4, 2},
                               KnownProgram{"programs-h200/ddp_w2.rank0", kLlama, 4, 2},
                               KnownProgram{"programs-h200/ddp_w2.rank1", kLlama, 4, 2},
                               KnownProgram{"programs-h200/fsdp_w1.rank0", kLlama, 4, 2},
                               KnownProgram{"programs-h200/fsdp_w2.rank0", kLlama / 2, 4, 2},
                               KnownProgram{"programs-h200/fsdp_w2.rank1", kLlama / 2, 4, 2},
                               KnownProgram{"programs-h200/llama", kLlama, 2, 2},
                               KnownProgram{"programs-h200/llama.stacks", kLlama, 2, 2},
                               KnownProgram{"programs-h200/llama_ckpt", kLlama, 2, 2},
                               KnownProgram{"programs-h200/llama_half.stacks", kLlama, 2, 2},
                               KnownProgram{"programs-h200/vit", kVit, 4, 2},
                               KnownProgram{"judge/base1", kJudge, 2, 2},
                               KnownProgram{"judge/base2", kJudge, 2, 2},
                               KnownProgram{"judge/batch5", kJudge, 2, 2},
                               KnownProgram{"judge/conf_pow4", kJudge, 2, 2},
                               KnownProgram{"judge/layers13", kJudge + 5 * kLayer, 2, 2},
                               KnownProgram{"judge/leak", kJudge, 2, 2},
                               KnownProgram{"judge/recomputed", kJudge, 2, 2},
                               KnownProgram{"judge/stream", kJudge, 2, 2}};

/// The most bytes, as requested, that each category held at any moment.
std::array<Bytes, kCategoryNames.size()> most_of(const ClientProgram& program) {
  const ProgramUses uses = uses_of(program);
  std::array<Bytes, kCategoryNames.size()> now{};
  std::array<Bytes, kCategoryNames.size()> most{};
  std::vector<Bytes> sizes(program.blocks);
  for (const ClientAction& action : program.actions) {
    if (action.kind != Kind::alloc && action.kind != Kind::free) continue;
    const auto place = static_cast<std::size_t>(uses.blocks[action.block].category);
    if (action.kind == Kind::alloc) {
      sizes[action.block] = action.bytes;
      now[place] += action.bytes;
      most[place] = std::max(most[place], now[place]);
    } else {
      now[place] -= sizes[action.block];
    }
  }
  return most;
}

Bytes of(const std::array<Bytes, kCategoryNames.size()>& most, Category category) {
  return most[static_cast<std::size_t>(category)];
}

void expect_parameters(const KnownProgram& known, const ClientProgram& program, double tolerance) {
  const auto most = most_of(program);
  const auto bytes = static_cast<double>(known.parameters * known.element);
  const bool trains = known.state > 0;
  EXPECT_NEAR(static_cast<double>(of(most, Category::weights)) / bytes, 1, tolerance) << "weights";
  EXPECT_NEAR(static_cast<double>(of(most, Category::gradients)) / bytes, trains ? 1 : 0, tolerance)
      << "gradients";
  EXPECT_NEAR(static_cast<double>(of(most, Category::optimizer_state)) / bytes,
              static_cast<double>(known.state), tolerance * static_cast<double>(known.state))
      << "optimizer state";
}

class KnownParameters : public testing::TestWithParam<KnownProgram> {};

// Bars: 1 % with what the recording has beside its history, 5 % without stacks and marks.
TEST_P(KnownParameters, AreWhatTheirCategoriesHold) {
  const fs::path file =
      fs::path{VRAMLAB_SOURCE_DIR} / "../shared/data" / (std::string{GetParam().file} + ".pickle.gz");
  if (!fs::exists(file)) GTEST_SKIP() << file << " is not there";
  ClientProgram program = read_client_programs(file, {}).front();
  expect_parameters(GetParam(), program, 0.01);
  program.stacks.clear();
  std::erase_if(program.actions, [](const ClientAction& action) { return action.kind == Kind::mark; });
  expect_parameters(GetParam(), program, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Recordings, KnownParameters, testing::ValuesIn(kPrograms), [](const auto& test) {
  std::string name = test.param.file;
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return letter == '/' || letter == '.' || letter == '-'; },
      '_');
  return name;
});

/// A made-up program: four weights of 4, 8, 12 and 16 MiB, cuBLAS's workspace, an input, three activations
/// with a scratch block beside each, and a backward pass.
class MadeUp {
 public:
  explicit MadeUp(int weight_scale = 1) : scale_(weight_scale) {}

  void build() {
    for (int i = 0; i < 4; ++i) alloc("w" + std::to_string(i), scale_ * weight(i));
  }
  void state(const std::string& name, int scale) {
    for (int i = 0; i < 4; ++i) alloc(name + std::to_string(i), scale * weight(i));
  }
  void forward() {
    alloc("x", 1);
    for (int i = 0; i < 3; ++i) {
      alloc("a" + std::to_string(i), 5 + i);
      if (i == 0 && steps_ == 0) alloc("cublas", 32);
      alloc("s", 3);
      free("s");
    }
  }
  void zero_grad() {
    for (int i = 0; i < 4 && steps_ > 0; ++i) free("g" + std::to_string(i));
  }
  void backward(bool gradients = true) {
    for (int i = 3; i >= 0; --i) {
      alloc("t", 2);
      if (gradients) alloc("g" + std::to_string(i), scale_ * weight(i));
      free("t");
      if (i > 0) free("a" + std::to_string(i - 1));
    }
    free("x");
    ++steps_;
  }
  void alloc(const std::string& id, int mib) { text_ += "alloc," + id + "," + std::to_string(mib) + "MiB\n"; }
  void free(const std::string& id) { text_ += "free," + id + "\n"; }
  void mark(const std::string& name) { text_ += "mark,,,,," + name + "\n"; }
  [[nodiscard]] ClientProgram program() const { return parse_allocation_script(text_, "made up"); }

 private:
  static int weight(int i) { return 4 * (i + 1); }
  int scale_;
  int steps_ = 0;
  std::string text_ = "op,id,bytes,stream,pool,text\n";
};

void expect_mib(const ClientProgram& program, const std::array<Bytes, kCategoryNames.size()>& mib) {
  const auto most = most_of(program);
  for (std::size_t i = 0; i < mib.size(); ++i) EXPECT_EQ(most[i], mib[i] * 1_MiB) << kCategoryNames[i];
}

TEST(UsesOfBlocks, OfATrainingWithAdamAreTold) {
  MadeUp made;
  made.build();
  for (int step = 0; step < 3; ++step) {
    made.forward();
    made.zero_grad();
    made.backward();
    if (step == 0) made.state("moments", 2);
  }
  const ClientProgram program = made.program();
  EXPECT_EQ(uses_of(program).steps, 3U);
  expect_mib(program, {40, 40, 80, 18, 2, 35, 0, 1, 0});
}

// A recording that dies in its third forward pass still holds what it saved.
TEST(UsesOfBlocks, ThatAreHeldWhereARecordingEndsAreActivations) {
  MadeUp made;
  made.build();
  for (int step = 0; step < 2; ++step) {
    made.forward();
    made.zero_grad();
    made.backward();
    if (step == 0) made.state("momentum", 1);
  }
  made.zero_grad();
  made.forward();
  made.alloc("last", 9);
  const ClientProgram program = made.program();
  EXPECT_EQ(uses_of(program).blocks.back().category, Category::activations);
}

TEST(UsesOfBlocks, GradientsThatAreSetToZeroStay) {
  MadeUp made;
  made.build();
  made.forward();
  made.backward();
  made.state("momentum", 1);
  made.forward();
  made.backward(false);
  // Only the first step is seen, so the input of the second is one more activation.
  expect_mib(made.program(), {40, 40, 40, 18 + 1, 2, 35, 0, 1, 0});
}

// Weights in half precision, their masters in single: both are there before the first gradient.
TEST(UsesOfBlocks, MasterWeightsBelongToTheOptimizer) {
  MadeUp made;
  made.build();
  made.state("master", 2);
  for (int step = 0; step < 3; ++step) {
    made.forward();
    made.zero_grad();
    made.backward();
    if (step == 0) made.state("moments", 4);
  }
  expect_mib(made.program(), {40, 40, 80 + 160, 18, 2, 35, 0, 1, 0});
}

TEST(UsesOfBlocks, ProgramsWithoutGradientsHaveWeightsAndTemporaries) {
  MadeUp made;
  made.build();
  made.forward();
  for (const char* id : {"a0", "a1", "a2", "x"}) made.free(id);
  made.alloc("y", 1);
  const ClientProgram program = made.program();
  EXPECT_EQ(uses_of(program).steps, 0U);
  EXPECT_EQ(of(most_of(program), Category::weights), 40_MiB);
  EXPECT_EQ(of(most_of(program), Category::activations), 0U);
}

// Nothing tells a model from other blocks that stay, but the stack of a module that is moved.
TEST(UsesOfBlocks, WithoutGradientsOrAnEndOfBuildingWhatStaysIsOther) {
  MadeUp made;
  made.alloc("a", 300);
  made.alloc("b", 300);
  made.free("a");
  made.mark("x");
  made.alloc("c", 400);
  ClientProgram program = made.program();
  for (const ProgramBlock block : {1U, 2U}) {
    EXPECT_EQ(uses_of(program).blocks[block].category, Category::other);
    EXPECT_EQ(uses_of(program).blocks[block].how, Evidence::rest);
  }
  program.frames.push_back({.function = "_apply", .file = "torch/nn/modules/module.py"});
  program.stacks.resize(2);
  program.stacks[1].push_back(0);
  program.actions[1].detail = 1;  // b
  EXPECT_EQ(uses_of(program).blocks[1].category, Category::weights);
  EXPECT_EQ(uses_of(program).blocks[1].how, Evidence::stack);
  EXPECT_EQ(uses_of(program).blocks[2].category, Category::other);
}

TEST(UsesOfBlocks, NamesOfPhasesAreHeard) {
  MadeUp made;
  made.alloc("w", 1);
  made.mark("before Optimizer.step#Adam.step");
  made.alloc("m", 7);
  made.mark("Optimizer.step#Adam.step");
  made.alloc("after", 1);
  const ProgramUses uses = uses_of(made.program());
  EXPECT_EQ(uses.blocks[0].category, Category::other);
  EXPECT_EQ(uses.blocks[1].category, Category::optimizer_state);
  MadeUp named;
  named.alloc("w", 1);
  named.alloc("gathered", 7);
  named.alloc("t", 1);
  named.free("t");
  named.free("gathered");
  named.mark("all_gather");
  const ProgramUses heard = uses_of(named.program());
  EXPECT_EQ(heard.blocks[1].category, Category::communication);
  EXPECT_EQ(heard.blocks[1].how, Evidence::annotation);
}

TEST(UsesOfBlocks, OfNothingAreNone) { EXPECT_TRUE(uses_of(ClientProgram{}).blocks.empty()); }

}  // namespace
}  // namespace vramlab
