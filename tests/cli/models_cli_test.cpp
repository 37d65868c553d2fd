// Models on the command line: what-if questions at other parameters, and what grew between two models.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/units.hpp"
#include "lab/json.hpp"
#include "recordings/input_file.hpp"
#include "tests/cli/program_run.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kSource = VRAMLAB_SOURCE_DIR;
const std::string kRecorded = kSource + "/tests/data/recorded/";
const std::string kLstm =
    "'" + kRecorded + "lstm_fit.pickle.gz' --marks '" + kRecorded + "lstm_fit.marks.json'";

class ModelsCliTest : public testing::Test {
 protected:
  ScratchFolder folder;
  Ran run(const std::string& arguments) const { return run_program(arguments, folder); }
};

/// Peak allocated that a real training measured at (batch, seq), bytes.
Bytes measured_lstm(std::int64_t batch, std::int64_t seq) {
  const std::string file = kSource + "/tests/data/grids/lstm.json";
  const Json grid = parse_json(read_input_file(file), file);
  for (const Json& row : grid["rows"]) {
    if (row["batch"] == batch && row["seq"] == seq) return row["peak_allocated"];
  }
  return 0;
}

// (64, 128) was never recorded. The measured process holds a workspace of 1 MiB that the recorded ones never
// asked for (docs/fidelity.md), and tails of blocks that earlier points left: 0.1 %.
TEST_F(ModelsCliTest, WhatIfAsksARecordingForOtherParameters) {
  const Ran ran = run("whatif " + kLstm + " --set batch=64 --set seq=128 --alloc-conf '' --json -");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["parameters"], (Json{{"batch", 64}, {"seq", 128}}));
  EXPECT_EQ(json["outside_range"], false);
  const auto peak = json["rows"][0]["peak_allocated_bytes"].get<Bytes>();
  EXPECT_EQ(peak, 3'036'656'640u);
  EXPECT_NEAR(static_cast<double>(peak), static_cast<double>(measured_lstm(64, 128)), 0.001 * 3.04e9);
  EXPECT_EQ(json["rows"][0]["marks"].size(), 4u);  // built and three steps
}

// A first step that allocates more than the settled ones (algorithm search, compilation): here all marks but
// those of building and of the last step are gone, so that the first step has the history of ten.
TEST_F(ModelsCliTest, FitTakesAFirstStepThatDoesMoreThanTheOthers) {
  Json marks = read_json_file(kRecorded + "lstm_fit.marks.json");
  Json& list = marks["marks"];
  list.erase(list.begin() + 2, list.end() - 2);
  std::ofstream{folder.file("few.marks.json")} << marks.dump();
  const Ran ran = run("fit '" + kRecorded + "lstm_fit.pickle.gz' --marks few.marks.json -o model.json");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("One shape, batch 32, gives a model of "));
}

TEST_F(ModelsCliTest, NothingThatIsReadIsOverwritten) {
  for (const char* name :
       {"lstm_fit.pickle.gz", "lstm_fit.marks.json", "lstm.pickle.gz", "lstm.truth.json.gz"})
    std::filesystem::copy_file(kRecorded + name, folder.file(name));
  std::filesystem::copy_file(kSource + "/tests/data/grids/lstm.json", folder.file("grid.json"));
  run("fit lstm_fit.pickle.gz --marks lstm_fit.marks.json -o model.json --quiet");
  const std::string fit = "fit lstm_fit.pickle.gz --marks lstm_fit.marks.json ";
  for (const std::string& words : {fit + "-o lstm_fit.marks.json", fit + "--times grid.json -o grid.json",
                                   std::string{"predict model.json --against grid.json --json grid.json"},
                                   std::string{"whatif lstm_fit.pickle.gz --json lstm_fit.marks.json"},
                                   std::string{"verify lstm.pickle.gz --json lstm.truth.json.gz"}}) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 2) << words;
    EXPECT_THAT(ran.err, HasSubstr("is read and would be overwritten; name another file.")) << words;
  }
}

TEST_F(ModelsCliTest, PredictTakesTheOptionsOfOneForm) {
  run("fit " + kLstm + " -o model.json --quiet");
  EXPECT_THAT(run("predict model.json --against grid.json --set batch=4").err,
              StartsWith("--set: does not go with --against"));
  EXPECT_THAT(run("predict model.json --points").err, StartsWith("--points: goes with --against"));
  EXPECT_THAT(run("predict model.json --gpu rtx-3060-12gb --limit 24GiB").err,
              StartsWith("--limit: a limit of 24.0 GiB is more than the 11.6 GiB of the card."));
  EXPECT_THAT(run("predict model.json --limit 0").err, StartsWith("--limit: \"0\" is not a size."));
}

TEST_F(ModelsCliTest, AParameterIsGivenOnce) {
  run("fit " + kLstm + " -o model.json --quiet");
  const std::string snapshot = "fit '" + kRecorded + "lstm_fit.pickle.gz' -o other.json ";
  EXPECT_EQ(run("predict model.json --set batch=8 --set batch=9").err,
            "--set: \"batch\" is given twice. Give it once.\n");
  EXPECT_EQ(run("whatif " + kLstm + " --set batch=8 --set batch=8").err,
            "--set: \"batch\" is given twice. Give it once.\n");
  EXPECT_EQ(run(snapshot + "--param batch=8 --param batch=9").err,
            "--param: \"batch\" is given twice. Give it once.\n");
  EXPECT_EQ(run(snapshot + "--steps batch=8,8 --steps batch=9,9").err,
            "--steps: \"batch\" is given twice. Give it once.\n");
  EXPECT_EQ(run(snapshot + "--param 'batch =8'").err,
            "--param: \"batch =8\" has no name without blanks. Write batch=8.\n");
}

TEST_F(ModelsCliTest, ANumberOfRanksIsReadWithItsSign) {
  run("fit " + kLstm + " -o model.json --quiet");
  for (const char* world : {"-1", "0", "65537"}) {
    EXPECT_EQ(run(std::string{"predict model.json --world="} + world).err,
              std::string{"--world: "} + world + " ranks are out of range. Allowed: 1 to 65536.\n");
  }
}

TEST_F(ModelsCliTest, ARankIsOfOneRecording) {
  std::filesystem::copy_file(kRecorded + "lstm_fit.pickle.gz", folder.file("a.pickle.gz"));
  std::filesystem::copy_file(kRecorded + "lstm_fit.pickle.gz", folder.file("b.pickle.gz"));
  Json marks = read_json_file(kRecorded + "lstm_fit.marks.json");
  marks["world"] = 2;
  marks["rank"] = 1;
  std::ofstream{folder.file("m.json")} << marks.dump();
  const std::string two = "fit a.pickle.gz b.pickle.gz --marks m.json --marks m.json -o model.json ";
  EXPECT_EQ(run(two + "--rank 0/2 --rank 1/2").err,
            "b.pickle.gz: is the same recording as a.pickle.gz, and is given as rank 0 of 2 and 1 of 2. Give "
            "each rank its own.\n");
  EXPECT_THAT(
      run("fit a.pickle.gz --marks m.json --rank 0/2 -o model.json").out,
      HasSubstr("warning: a.pickle.gz is taken for rank 0 of 2 (--rank); its files say rank 1 of 2.\n"));
}

// NCCL's buffers are no part of a context: what two ranks had outside on their H200 is taken for other cards.
TEST_F(ModelsCliTest, RanksAreComparedWithTheirNumberAndTakeWhatLayOutside) {
  const std::string data = kSource + "/../shared/data/programs-h200/";
  if (!std::filesystem::exists(data + "ddp_w2.rank1.pickle.gz"))
    GTEST_SKIP() << "ddp_w2 is not there (../shared/data/programs-h200)";
  std::string words = "fit";
  for (const char* name : {"ddp_w1.rank0", "ddp_w2.rank0", "ddp_w2.rank1"})
    words += " '" + data + name + ".pickle.gz' --marks '" + data + name + ".marks.json'";
  ASSERT_EQ(run(words + " --rank 0/1 --rank 0/2 --rank 1/2 -o ddp.json --quiet").code, 0);
  const Ran other = run("predict ddp.json --gpu h100-80gb --json other.json");
  EXPECT_THAT(other.out, HasSubstr("(1.6 GiB outside the allocator, assumed: as recorded on another card)"));
  const Json json = read_json_file(folder.file("other.json"));
  EXPECT_EQ(json["outside_assumed"], true);
  EXPECT_EQ(json["outside_recorded"], false);
  EXPECT_NEAR(json["outside_bytes"].get<double>(), 1'693'319'168.0, 2.0 * (1 << 20));
  EXPECT_THAT(run("predict ddp.json --gpu h200-141gb").out,
              HasSubstr("(1.6 GiB outside the allocator, as recorded)"));
  const Ran eight = run("predict ddp.json --world 8 --gpu h200-141gb --json eight.json");
  EXPECT_THAT(eight.out, HasSubstr("(1.6 GiB outside the allocator, extrapolated)"));
  EXPECT_THAT(eight.out, HasSubstr("real runs of up to 4 ranks of one host, and none of more.\n"));
  EXPECT_EQ(read_json_file(folder.file("eight.json"))["outside_recorded"], false);
  const std::string against = " --against '" + data + "ddp_w1.rank0.grid.json'";
  const Ran wrong = run("predict ddp.json" + against);
  EXPECT_THAT(wrong.out, StartsWith("Simulated as 2 ranks, at each point the one with the highest reserved "
                                    "peak.\nwarning: by its name, ddp_w1.rank0 was measured with 1 rank. "
                                    "--world 1 compares like with like.\n"));
  const Ran right = run("predict ddp.json --world 1" + against);
  EXPECT_THAT(right.out, StartsWith("Simulated as 1 rank.\n"));
  EXPECT_THAT(right.out, testing::Not(HasSubstr("was measured with")));
  EXPECT_THAT(right.out, HasSubstr("\nOutside the allocator: 1393360896 bytes; measured 1393360896 to "
                                   "1395458048.\n"));
  Json grid = read_json_file(data + "ddp_w1.rank0.grid.json");
  grid["world"] = 1;
  std::ofstream{folder.file("grid.json")} << grid.dump();
  EXPECT_EQ(run("predict ddp.json --against grid.json").err,
            "ddp_w1.rank0: was measured with 1 rank, not 2. Give --world 1, or --world 2 to compare them all "
            "the same.\n");
}

// Fitted first and asked then, the same answer comes out.
TEST_F(ModelsCliTest, WhatIfIsFitAndPredictInOneGo) {
  run("fit " + kLstm + " -o model.json --quiet");
  for (const std::string set : {" --set batch=64 --set seq=512", " --set batch=8 --set seq=64"}) {
    const Json two = Json::parse(run("predict model.json" + set + " --gpu rtx-3060-12gb --json -").out);
    const Json one =
        Json::parse(run("whatif " + kLstm + set + " --alloc-conf '' --gpu rtx-3060-12gb --json -").out);
    for (const char* figure : {"peak_allocated_bytes", "peak_reserved_bytes", "usable_bytes", "fits"}) {
      EXPECT_EQ(one["rows"][0][figure], two[figure]) << set << ", " << figure;
    }
    EXPECT_EQ(one["outside_range"], two["outside_range"]) << set;
  }
}

TEST_F(ModelsCliTest, WhatIfCombinesParametersWithSettingsAndCards) {
  const Json json = Json::parse(run("whatif " + kLstm +
                                    " --set batch=64 --set seq=512 --alloc-conf '' --alloc-conf "
                                    "expandable_segments:True --gpu rtx-3060-12gb --capacity 8GiB --json -")
                                    .out);
  ASSERT_EQ(json["rows"].size(), 4u);
  EXPECT_EQ(json["rows"][0]["fits"], true);   // 9.6 GiB on a card of 12 GB
  EXPECT_EQ(json["rows"][3]["fits"], false);  // and of 8 GiB
  EXPECT_EQ(json["rows"][3]["alloc_conf"], "expandable_segments:True");
}

TEST_F(ModelsCliTest, WhatIfSaysWhatIsWrongWithParameters) {
  const std::string snapshot = "'" + kRecorded + "lstm_fit.pickle.gz'";
  EXPECT_EQ(
      run("whatif " + snapshot + " --set batch=16").err,
      "--set: asks for other parameters, which needs the marks of the recorded steps. Add --marks M.json, "
      "as python/vramlab_recorder.py writes it.\n");
  EXPECT_EQ(
      run("whatif " + kLstm).err,
      "--marks: is for other parameters than the recorded ones, and none is given. Add --set batch=16, or "
      "leave --marks out.\n");
  EXPECT_EQ(run("whatif " + kLstm + " --set bach=16").err,
            "--set: \"bach\" is not a parameter of the model. Did you mean \"batch\"?\n");
  EXPECT_EQ(run("whatif " + kLstm + " --set batch=x").code, 2);
  EXPECT_EQ(run("whatif " + snapshot + " --marks nowhere.json --set batch=16").code, 2);
  EXPECT_EQ(run("whatif " + snapshot + " " + kLstm + " --set batch=16").err,
            "--marks: is given 1 times for 2 snapshots. Give it once for each.\n");
}

// gpt2_var: batch 8 in every step.
TEST_F(ModelsCliTest, AParameterThatNeverMovedIsRefused) {
  const std::string data = kSource + "/../shared/data/recorded/gpt2_var";
  if (!std::filesystem::exists(data + ".pickle.gz")) GTEST_SKIP() << "gpt2_var is not there (../shared/data)";
  const Ran ran = run("whatif '" + data + ".pickle.gz' --marks '" + data + ".marks.json' --set batch=16");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(
      ran.err,
      "--set batch: batch was 8 in every recorded step, so nothing is known of 16. Record steps at two or "
      "more values of batch and fit again.\n");
}

std::int64_t sum_of(const Json& rows, const char* key) {
  std::int64_t sum = 0;
  for (const Json& row : rows) sum += row[key].get<std::int64_t>();
  return sum;
}

TEST_F(ModelsCliTest, DiffOfModelsAccountsForEveryByte) {
  const std::string models = "'" + kSource + "/models/lstm.json' '" + kSource + "/models/gpt2.json'";
  const Json json = Json::parse(run("diff " + models + " --set batch=8 --set seq=64 --json -").out);
  EXPECT_EQ(json["kind"], "models");
  EXPECT_EQ(json["parameters"]["a"], (Json{{"batch", 8}, {"seq", 64}}));
  EXPECT_EQ(json["parameters"]["b"], (Json{{"batch", 8}, {"seq", 64}}));
  for (const char* key : {"a_bytes", "b_bytes", "growth_bytes", "a_tensors", "b_tensors"}) {
    EXPECT_EQ(sum_of(json["peak_by_law"], key), json["peak"][key].get<std::int64_t>()) << key;
    EXPECT_EQ(sum_of(json["step_by_law"], key), json["step"][key].get<std::int64_t>()) << key;
  }
  // lstm_fit allocates 45 times a settled step at 8 x 64, gpt2_fit 1,323 times.
  EXPECT_EQ(json["step"]["a_tensors"], 45);
  EXPECT_EQ(json["step"]["growth_bytes"],
            json["step"]["b_bytes"].get<std::int64_t>() - json["step"]["a_bytes"].get<std::int64_t>());
}

// What lives at the peak is what an allocator would call requested there.
TEST_F(ModelsCliTest, DiffOfModelsMeetsTheRequestedPeak) {
  run("fit " + kLstm + " -o model.json --quiet");
  const Json whatif =
      Json::parse(run("whatif " + kLstm + " --set batch=64 --set seq=128 --alloc-conf '' --json -").out);
  const Json diff = Json::parse(run("diff model.json model.json --set batch=64 --set seq=128 --json -").out);
  EXPECT_EQ(diff["peak"]["a_bytes"], whatif["rows"][0]["peak_requested_bytes"]);
  EXPECT_EQ(diff["peak"]["growth_bytes"], 0);
  for (const Json& row : diff["step_by_law"]) EXPECT_EQ(row["growth_bytes"], 0) << row;
}

TEST_F(ModelsCliTest, DiffOfModelsSaysWhatIsWrong) {
  const std::string lstm = "'" + kSource + "/models/lstm.json'";
  EXPECT_THAT(run("diff " + lstm + " " + lstm + " --set bach=8").err,
              StartsWith("--set: \"bach\" is not a parameter of the model. Did you mean \"batch\"?"));
  std::ofstream{folder.file("result.json")} << R"({"scenario": "x", "policies": []})";
  EXPECT_THAT(run("diff " + lstm + " result.json").err, HasSubstr("are of two kinds"));
  EXPECT_THAT(run("diff result.json result.json --set batch=8").err, StartsWith("--set: is for two models"));
}

// 0.27 GB, and 4 · 0.63 · 1.85 GB a sample of T2; ten measured at half of that calibrate the table.
TEST_F(ModelsCliTest, EstimateFindsTheSafeBatchOfATask) {
  const std::string question = "estimate --safe-batch T2 --images T2=4 --budget 8GiB";
  const Ran plain = run(question);
  EXPECT_EQ(plain.code, 0);
  EXPECT_THAT(plain.out, StartsWith("A batch of up to 1 sample of T2 fits within 8.0 GiB, by the table.\n"));
  EXPECT_THAT(plain.out, Not(HasSubstr("Assumed")));
  EXPECT_THAT(run("estimate --safe-batch T2 --budget 8GiB").out,
              HasSubstr("Assumed: 3 images of a T2 sample."));
  std::ofstream file{folder.file("measured.csv")};
  file << "task,mb\n";
  for (int i = 0; i < 10; ++i) file << "T2,2663.4\n";  // 1024 · (0.27 + 2.331)
  file.close();
  const Ran calibrated = run(question + " --calibration measured.csv --json e.json");
  EXPECT_THAT(calibrated.out, StartsWith("A batch of up to 3 samples of T2 fits within 8.0 GiB, by the table "
                                         "as calibrated for T2.\n"));
  const Json json = read_json_file(folder.file("e.json"));
  EXPECT_EQ(json["safe_batch"], 3);
  EXPECT_EQ(json["at_bound"], false);
  EXPECT_NEAR(json["calibration"]["T2"]["factor"].get<double>(), 0.5, 1e-3);
  EXPECT_THAT(run("estimate --safe-batch T2 --budget 1TiB").out,
              HasSubstr("no more than 256 were looked for"));
  EXPECT_THAT(run("estimate --safe-batch T2 --budget 1GiB").out, StartsWith("Not one sample of T2 fits"));
  EXPECT_EQ(run("estimate --safe-batch T4 --budget 8GiB").code, 2);
  EXPECT_EQ(run("estimate --safe-batch T2").code, 2);
  EXPECT_EQ(run("estimate --samples 5 --faithful").code, 2);
}

}  // namespace
}  // namespace vramlab
