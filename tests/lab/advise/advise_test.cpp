// What to change in a model, asked of recordings, against what was really measured.
#include "lab/advise/advise.hpp"

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/model/measured_grid.hpp"
#include "recordings/open.hpp"
#include "recordings/scripts/allocation_script.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const fs::path kShared = fs::path{VRAMLAB_SOURCE_DIR} / "../shared/data";
const fs::path kDecoders = kShared / "programs-h200";

ClientProgram recording(const fs::path& file) { return read_client_programs(file).front(); }

AdviceQuestion question_for(const ClientProgram& program, std::optional<Bytes> total = {}) {
  AdviceQuestion question;
  question.settings = program.settings;
  question.card = "a card";
  question.total = total;
  question.ways = {Way::recompute};
  question.host_bandwidth = {25e9, "given"};
  return question;
}

double middle_ms(const MeasuredGrid& grid, int batch, int seq) {
  for (const GridRow& row : grid.rows) {
    if (row.parameters.at("batch") != batch || row.parameters.at("seq") != seq) continue;
    std::vector<double> ms = row.step_ms;
    std::ranges::sort(ms);
    return ms[ms.size() / 2];
  }
  return 0;
}

// Alone on the card, at the points that do not wait for the host.
TEST(AdviseTest, TimeLostByEveryLayerIsNearToWhatWasMeasured) {
  if (!fs::exists(kDecoders)) GTEST_SKIP() << "no " << kDecoders;
  const ClientProgram program = recording(kDecoders / "llama.stacks.pickle.gz");
  const Advice advice = advise(program, question_for(program));
  ASSERT_THAT(advice.units, SizeIs(12));
  double ratio = 1;
  for (const UnitFigures& unit : advice.units) ratio += unit.share;
  const MeasuredGrid none = read_grid_file(kDecoders / "llama.times.json");
  const MeasuredGrid all = read_grid_file(kDecoders / "llama_ckpt.times.json");
  for (const auto& [batch, seq] : {std::pair{32, 384}, {32, 512}, {16, 1024}, {8, 1024}}) {
    const double real = middle_ms(all, batch, seq) / middle_ms(none, batch, seq);
    EXPECT_GT(real, 1) << batch << ' ' << seq;
    EXPECT_NEAR(ratio / real, 1, 0.2) << batch << ' ' << seq;
  }
}

TEST(AdviseTest, TheFrontFallsAndTheCheapestThatFitsIsChosen) {
  if (!fs::exists(kDecoders)) GTEST_SKIP() << "no " << kDecoders;
  const ClientProgram program = recording(kDecoders / "llama.stacks.pickle.gz");
  const Bytes context = 527_MiB;
  AdviceQuestion question = question_for(program, 4400_MiB + context);
  question.context = context;
  const Advice advice = advise(program, question);
  ASSERT_GE(advice.front.size(), 3U);
  for (std::size_t i = 1; i < advice.front.size(); ++i) {
    EXPECT_GE(advice.front[i].time_ratio, advice.front[i - 1].time_ratio);
    EXPECT_EQ(advice.front[i].fits,
              advice.front[i].peak_reserved <= 4400_MiB || advice.front[i].outcome.fits());
  }
  EXPECT_EQ(advice.front.front().time_ratio, 1);
  EXPECT_FALSE(*advice.front.front().fits);  // it reserves 4,834 MiB
  ASSERT_TRUE(advice.best);
  for (std::size_t i = 0; i < *advice.best; ++i) EXPECT_FALSE(*advice.front[i].fits);
  EXPECT_THAT(pytorch_lines(advice, advice.front[*advice.best]),
              Contains(HasSubstr("modeling_llama.py:403: checkpoint(module, ..., use_reentrant=False)")));
  question.threads = 3;
  EXPECT_EQ(advice_json(advise(program, question), question).dump(), advice_json(advice, question).dump());
}

// Every recording with stacks, and some without: advice is sane, or says what it cannot know.
TEST(AdviseTest, EveryRecordingIsAdvisedOrToldWhyNot) {
  if (!fs::exists(kDecoders)) GTEST_SKIP() << "no " << kDecoders;
  for (const char* name :
       {"programs-h200/ddp_w2.rank1", "programs-h200/fsdp_w2.rank0", "programs-h200/llama_half.stacks",
        "judge/stream", "judge/recomputed", "recorded/resnet.stacks", "recorded/gpt2_var",
        "recorded/generate", "recorded/graphed", "public-snapshots/gpt-medium-training-128",
        "public-snapshots/transformer-steps-999-segments"}) {
    const fs::path file = kShared / (std::string{name} + ".pickle.gz");
    if (!fs::exists(file)) continue;
    const ClientProgram program = recording(file);
    const Advice advice = advise(program, question_for(program));
    EXPECT_FALSE(advice.notes.empty()) << name;
    if (advice.units.empty()) {
      EXPECT_THAT(advice.front, SizeIs(1)) << name;
    }
    for (const AdvicePoint& point : advice.front) {
      EXPECT_LE(point.peak_reserved, advice.front.front().peak_reserved) << name;
      EXPECT_LT(point.time_ratio, 1.7) << name;
    }
  }
}

TEST(AdviseTest, SaysWhatItCannotKnow) {
  const ClientProgram program = parse_allocation_script(
      "op,id,bytes,stream,pool,text\nalloc,a,100MiB\nfree,a\nalloc,b,50MiB\n", "script");
  const Advice advice = advise(program, question_for(program, 90_MiB + kContextBytes));
  EXPECT_THAT(advice.units, IsEmpty());
  EXPECT_THAT(advice.front, SizeIs(1));
  EXPECT_FALSE(advice.best);
  EXPECT_THAT(advice.notes, Contains(HasSubstr("no backward was found in the recording.")));
  EXPECT_THAT(advice_verdict(advice, question_for(program, 90_MiB + kContextBytes)).front(),
              HasSubstr("nor does anything that was tried"));
  EXPECT_THROW(advise(program, question_for(program, 100_MiB)), InputError);
}

}  // namespace
}  // namespace vramlab
