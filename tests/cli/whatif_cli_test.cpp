// vramlab whatif: what is said before the replay, and which outputs a failing one leaves.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "lab/json.hpp"
#include "tests/cli/cli_rig.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

class WhatIfCliTest : public CliTest {};

TEST_F(WhatIfCliTest, AnswersBeforeAnOutputFails) {
  std::ofstream(folder.file("one.csv")) << "op,id,bytes\nalloc,a,1MiB\n";
  std::filesystem::create_directory(folder.file("taken.pickle"));
  const Ran failed =
      run("whatif one.csv --alloc-conf '' --json r.json --report r.html --export taken.pickle");
  EXPECT_EQ(failed.code, 2);
  EXPECT_TRUE(std::filesystem::exists(folder.file("r.json")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("r.html")));
}

TEST_F(WhatIfCliTest, SpeaksOfOneOtherSetting) {
  std::ofstream(folder.file("one.csv")) << "op,id,bytes\nalloc,a,1MiB\n";
  EXPECT_THAT(run("whatif one.csv --alloc-conf '' --alloc-conf ''").out,
              HasSubstr("; the other setting tried does not need noticeably less."));
}

TEST_F(WhatIfCliTest, ShowsTheRowsAlone) {
  std::ofstream(folder.file("two.csv")) << "op,id,bytes\nalloc,a,1MiB\nalloc,b,30MiB\nfree,a,\n";
  const std::string whole = "whatif two.csv --alloc-conf recorded --capacity 24GiB";
  const Ran rows = run(whole + " --rows --report r.html");
  EXPECT_THAT(rows.out, HasSubstr("(default)"));
  EXPECT_THAT(rows.out, testing::Not(HasSubstr("category")));
  const Json all = Json::parse(run(whole + " --json -").out);
  const Json few = Json::parse(run(whole + " --rows --json -").out);
  EXPECT_EQ(few["rows"], all["rows"]);
  EXPECT_EQ(few["rows"][0]["alloc_conf"], "");
  for (const char* left_out : {"planned", "peak", "categories", "pins", "timeline"}) {
    EXPECT_TRUE(all.contains(left_out)) << left_out;
    EXPECT_FALSE(few.contains(left_out)) << left_out;
  }
  EXPECT_THAT(run("whatif two.csv --rows --at peak").err, HasSubstr("--at: shows what --rows leaves out."));
  EXPECT_THAT(run("whatif two.csv --rows --by file").err, HasSubstr("--rows: leaves out what --details, "));
}

TEST_F(WhatIfCliTest, NeedsGnuplotBeforeAnyWork) {
  std::ofstream(folder.file("one.csv")) << "op,id,bytes\nalloc,a,1MiB\n";
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder.path().c_str(), 1);
  const Ran without = run("whatif one.csv --picture p.svg");
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(without.code, 2);
  EXPECT_EQ(without.out, "");
  EXPECT_THAT(without.err, HasSubstr("gnuplot is needed to draw it."));
}

TEST_F(WhatIfCliTest, GroupsOnlyWhatHasStacks) {
  const std::string lstm = "'" VRAMLAB_SOURCE_DIR "/tests/data/recorded/lstm.pickle.gz'";
  const Ran none = run("whatif " + lstm + " --folded x.folded");
  EXPECT_THAT(none.err, HasSubstr("holds no stacks. Record with "));
  EXPECT_EQ(none.out, "");  // said before any work
  EXPECT_THAT(run("whatif " + lstm + " --by module").out,
              HasSubstr("lstm.pickle.gz holds no stacks. Record "));
  const Ran wrong = run("whatif " + lstm + " --by line --depth 0");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--by: \"line\" is not known. Choose frame, file, module or stack."));
  EXPECT_THAT(wrong.err, HasSubstr("--depth: 0 is out of range; allowed is 1 and more."));
  write_scenario("small.json");
  run("compare small.json --json a.json --quiet");
  EXPECT_THAT(run("diff a.json a.json --depth 2").err,
              HasSubstr("--depth: is for two snapshots; these are results."));
}

TEST_F(WhatIfCliTest, ComputesAgainOnlyWhatThereIs) {
  const std::string decoder = "'" VRAMLAB_SOURCE_DIR "/tests/data/recomputed/decoder.none.pickle.gz' ";
  const Ran half = run("whatif " + decoder + "--alloc-conf '' --recompute modeling_llama.py:403 --every 2");
  EXPECT_EQ(half.code, 0) << half.err;
  EXPECT_THAT(half.out, HasSubstr("As if modeling_llama.py:403 #0, #2 were computed again in backward"));
  EXPECT_THAT(run("whatif " + decoder + "--every 2").err,
              HasSubstr("--every: says which repeats of --recompute"));
  EXPECT_THAT(run("whatif " + decoder + "--recompute modeling_llama.py:403 --every 0").err,
              HasSubstr("--every: must be 1 or more"));
  std::ofstream(folder.file("one.csv")) << "op,id,bytes\nalloc,a,1MiB\n";
  EXPECT_THAT(run("whatif one.csv --recompute a.py:1").err,
              HasSubstr("no part of this program is known to keep"));
}

TEST_F(WhatIfCliTest, AdviseOfAModelSaysThatNothingWasRecorded) {
  const std::string model = "'" VRAMLAB_SOURCE_DIR "/models/llama.json' ";
  const Ran asked = run("advise " + model + "--set batch=2 --set seq=128 --only recompute --json a.json");
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_THAT(asked.out,
              HasSubstr("note: Nothing was recorded of this: three steps of the model at batch=2"));
  const Json answer = Json::parse(read_input_file(folder.file("a.json")));
  EXPECT_EQ(answer["parameters"], (Json{{"batch", 2}, {"seq", 128}}));
  EXPECT_TRUE(answer["outside_range"].is_boolean());
  EXPECT_EQ(answer["step_seconds_from"], "the model's");
}

// The shipped decoder: parts of its batch are tried as well, where they are asked for alone, no units.
TEST_F(WhatIfCliTest, AdviseOfAModelTriesSmallerPartsOfItsBatch) {
  const std::string model = "'" VRAMLAB_SOURCE_DIR "/models/llama.json' ";
  const std::string step = "--set batch=8 --set seq=512 --limit 3400MiB --only parts ";
  const Ran asked = run("advise " + model + step + "--json a.json");
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_THAT(asked.out, HasSubstr("batch in parts of 2"));
  EXPECT_THAT(asked.out, HasSubstr("for part in batch.split(2): loss(part).backward()"));
  const Json answer = Json::parse(read_input_file(folder.file("a.json")));
  EXPECT_EQ(answer["front"][0]["part"], nullptr);
  EXPECT_EQ(answer["front"][answer["best"].get<std::size_t>()]["part"], (Json{{"batch", 2}}));
  EXPECT_THAT(run("advise " + model + step + "--batch rows").err,
              HasSubstr("is not a parameter of the model"));
  const std::string decoder = "'" VRAMLAB_SOURCE_DIR "/tests/data/recomputed/decoder.none.pickle.gz' ";
  EXPECT_THAT(run("advise " + decoder + "--batch batch").err, HasSubstr("is a recording. Fit it first."));
  EXPECT_THAT(run("whatif " + decoder + "--part batch=2").err, HasSubstr("Give --marks and --set as well."));
}

TEST_F(WhatIfCliTest, AdviseSaysWhatFitsAndWhatIsWrong) {
  const std::string decoder = "'" VRAMLAB_SOURCE_DIR "/tests/data/recomputed/decoder.none.pickle.gz' ";
  const Ran fits = run("advise " + decoder + "--limit 240MiB --only recompute --json a.json --report a.html");
  EXPECT_EQ(fits.code, 0) << fits.err;
  EXPECT_THAT(fits.out, HasSubstr("Does not fit on a limit of 240.0 MiB"));
  EXPECT_THAT(fits.out, HasSubstr("modeling_llama.py:403: checkpoint(module, ..., use_reentrant=False)"));
  EXPECT_TRUE(std::filesystem::exists(folder.file("a.html")));
  EXPECT_THAT(run("advise " + decoder + "--only recompte").err, HasSubstr("is not a way. Did you mean"));
  EXPECT_THAT(run("advise " + decoder + "--capacity 1GiB --gpu l4").err, HasSubstr("both name a card"));
  EXPECT_THAT(run("advise " + decoder + "--capacity 12gigs").err, HasSubstr("is not a size"));
  EXPECT_THAT(run("advise " + decoder + "--set batch=2").err, HasSubstr("is a recording. Fit it first."));
}

}  // namespace
}  // namespace vramlab
