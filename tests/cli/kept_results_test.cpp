// Runs of matrix, check and compare --seeds are kept as they end: killed at any moment, going on ends with
// the same bytes. Sweeps: sweep_cli_test.cpp.
#include <filesystem>
#include <fstream>
#include <random>

#include <gmock/gmock.h>

#include "lab/json.hpp"
#include "tests/cli/cli_rig.hpp"
#include "tests/cli/killed_program.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class KeptResultsTest : public CliTest {
 protected:
  std::string text(const std::string& file) const { return read_input_file(folder.file(file)); }

  // Scenarios of a folder, whose runs take some milliseconds each; every second one has random faults, unless
  // they are to be checked: faults end some runs early.
  void write_scenarios(int count, bool faults = true) const {
    std::filesystem::create_directory(folder.path() / "all");
    write_scenario("plain.json");
    Json json = read_json_file(folder.file("plain.json"));
    json["workload"]["iterations"] = 400;
    for (int i = 0; i < count; ++i) {
      json["name"] = "number " + std::to_string(i);
      json["device"]["total"] = std::to_string(9000 + 100 * i) + "MiB";
      json.erase("faults");
      if (faults && i % 2 == 1) json["faults"] = {{"errors", {{"chance", 0.001}}}};
      std::ofstream{folder.file("all/" + std::to_string(i) + ".json")} << json.dump();
    }
  }

  // Kills `command` 20 times, each time some random lines further on, and then lets it end.
  void kill_and_go_on(const std::string& command, std::int64_t all) {
    ASSERT_EQ(run(command + " --json whole.json --results whole.jsonl -j 1").code, 0) << command;
    ASSERT_EQ(lines_of(folder.file("whole.jsonl")), all) << command;
    std::mt19937 random{42};
    std::uniform_int_distribution<std::int64_t> more{0, 2};
    int kills = 0;
    for (int moment = 0; moment < 20; ++moment) {
      const std::int64_t lines = lines_of(folder.file("killed.jsonl")) + more(random);
      const int status =
          act_at("exec '" VRAMLAB_PROGRAM "' " + command + " --results killed.jsonl -j 2 >out 2>err", folder,
                 "killed.jsonl", lines, [](pid_t program) { ::kill(program, SIGKILL); });
      kills += WIFSIGNALED(status) ? 1 : 0;
    }
    EXPECT_GT(kills, 0) << command;
    const Ran rest = run(command + " --json rest.json --results killed.jsonl -j 2");
    EXPECT_EQ(rest.code, 0) << rest.err;
    EXPECT_EQ(text("killed.jsonl"), text("whole.jsonl")) << command;
    EXPECT_EQ(text("rest.json"), text("whole.json")) << command;
  }
};

TEST_F(KeptResultsTest, AKilledMatrixGoesOnToTheSameBytes) {
  write_scenarios(6);
  kill_and_go_on("matrix all --seeds 9", 3 + 3 * 9);  // runs with seeds where faults are random
}

TEST_F(KeptResultsTest, AKilledCheckGoesOnToTheSameBytes) {
  write_scenarios(30, false);
  kill_and_go_on("check all", 30);
}

TEST_F(KeptResultsTest, AKilledComparisonOfSeedsGoesOnToTheSameBytes) {
  write_scenarios(2);
  kill_and_go_on("compare all/0.json all/1.json --seeds 15", 30);
}

TEST_F(KeptResultsTest, WhatTheFileHasIsNotRunAgain) {
  write_scenarios(4, false);
  ASSERT_EQ(run("check all --results kept.jsonl").code, 0);
  const std::string kept = text("kept.jsonl");
  EXPECT_THAT(kept, StartsWith("{\"key\":\""));
  const Ran again = run("check all --results kept.jsonl --resume");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("4 passed, 0 failed"));
  EXPECT_EQ(text("kept.jsonl"), kept);
}

TEST_F(KeptResultsTest, AFileOfOtherResultsIsRefused) {
  write_scenarios(2, false);
  ASSERT_EQ(run("check all --results kept.jsonl").code, 0);
  const std::string kept = text("kept.jsonl");
  const Ran other = run("matrix all --results kept.jsonl");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, StartsWith("kept.jsonl: line 1: is the result of something else"));
  Json json = read_json_file(folder.file("all/0.json"));
  json["workload"]["iterations"] = 401;  // the scenario is another one now
  std::ofstream{folder.file("all/0.json")} << json.dump();
  EXPECT_EQ(run("check all --results kept.jsonl").code, 2);
  EXPECT_EQ(text("kept.jsonl"), kept);
}

TEST_F(KeptResultsTest, WhatWasChangedByHandIsNoticed) {
  write_scenarios(2, false);
  ASSERT_EQ(run("check all --results kept.jsonl").code, 0);
  std::string changed = text("kept.jsonl");
  changed.replace(changed.find("\"ok\":true"), 9, "\"ok\":false");
  std::ofstream{folder.file("kept.jsonl")} << changed;
  const Ran ran = run("check all --results kept.jsonl");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, StartsWith("kept.jsonl: line 1: was changed after it was written."));
  std::ofstream{folder.file("notes.jsonl")} << "not a result";
  EXPECT_THAT(run("check all --results notes.jsonl").err,
              StartsWith("notes.jsonl: line 1: is not a kept result."));
  EXPECT_EQ(text("notes.jsonl"), "not a result");
  EXPECT_THAT(run("check all --results kept.csv").err, HasSubstr("must end in .jsonl"));
}

TEST_F(KeptResultsTest, ResumeNeedsSomethingToGoOnWith) {
  write_scenarios(2);
  EXPECT_THAT(run("check all --resume").err, StartsWith("--resume: there is nothing to go on with."));
  const Ran none = run("matrix all --results new.jsonl --resume");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, StartsWith("new.jsonl: there is nothing to go on with."));
  EXPECT_FALSE(std::filesystem::exists(folder.file("new.jsonl")));
}

TEST_F(KeptResultsTest, ASecondProgramIsRefused) {
  write_scenarios(2);
  ASSERT_EQ(std::system(("cd '" + folder.path().string() +
                         "' && : >kept.jsonl && flock kept.jsonl '" VRAMLAB_PROGRAM
                         "' check all --results kept.jsonl >out 2>err; echo $? >code")
                            .c_str()),
            0);
  EXPECT_EQ(text("code"), "2\n");
  EXPECT_THAT(text("err"), StartsWith("kept.jsonl: another program is writing it."));
}

TEST_F(KeptResultsTest, AnInterruptedCheckSaysWhatItHas) {
  write_scenarios(30);
  for (int i = 1; i < 30; i += 2) std::filesystem::remove(folder.file("all/" + std::to_string(i) + ".json"));
  const int status = act_at("exec '" VRAMLAB_PROGRAM "' check all --results kept.jsonl -j 1 >out 2>err",
                            folder, "kept.jsonl", 3, [](pid_t program) { ::kill(program, SIGINT); });
  ASSERT_EQ(WEXITSTATUS(status), 130) << text("err");
  const std::int64_t lines = lines_of(folder.file("kept.jsonl"));
  EXPECT_THAT(text("err"),
              StartsWith("Stopped after " + std::to_string(lines) + " of 15 files. They are in kept.jsonl"));
  EXPECT_THAT(text("out"), HasSubstr(std::to_string(lines) + " passed, 0 failed"));
}

// R: means and the standard deviation of the sample, of figures that single runs give.
TEST_F(KeptResultsTest, SeedsGiveMeansAndSpreadsOfEveryKind) {
  write_scenarios(2);
  const Ran ran = run("compare all/1.json --seeds 3 --json seeds.json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("number 1: seeds 1 to 3 of 3 policies\n"));
  const Json result = read_json_file(folder.file("seeds.json"));
  EXPECT_EQ(result["seeds"], 3);
  Json scenario = read_json_file(folder.file("all/1.json"));
  std::vector<double> values;
  for (int seed = 1; seed <= 3; ++seed) {
    scenario["seed"] = seed;
    std::ofstream{folder.file("one.json")} << scenario.dump();
    ASSERT_EQ(run("compare one.json --json one-result.json").code, 0);
    values.push_back(
        read_json_file(folder.file("one-result.json"))["policies"][1]["metrics"]["samples_per_s"]);
  }
  const double mean = (values[0] + values[1] + values[2]) / 3;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  EXPECT_DOUBLE_EQ(result["policies"][1]["metrics"]["samples_per_s"], mean);
  EXPECT_NEAR(result["policies"][1]["spread"]["samples_per_s"], std::sqrt(squares / 2), 1e-9);
  EXPECT_THAT(run("compare all/0.json --seeds 3").out, HasSubstr("every seed gives the same run"));
  EXPECT_EQ(run("compare all/1.json --seeds 3 --picture a.svg").code, 2);
}

}  // namespace
}  // namespace vramlab
