// Under mpirun: the same bytes as threads make, on four ranks of this machine.
#include <array>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "lab/json.hpp"
#include "tests/cli/cli_rig.hpp"
#include "tests/cli/killed_program.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class RanksTest : public CliTest {
 protected:
  void SetUp() override {
    if (std::string{VRAMLAB_MPIRUN}.empty()) GTEST_SKIP() << "built without MPI";
    write_scenario("plain.json");
    Json json = read_json_file(folder.file("plain.json"));
    json["workload"]["iterations"] = 300;
    json["faults"] = {{"errors", {{"chance", 0.002}}}};
    json["sweep"] = Json::parse(R"([{"vary": "/seed", "from": 1, "to": 10},
                                    {"vary": "/workload/iterations", "over": [1000, 3000, 5000, 9000]}])");
    std::ofstream{folder.file("sweep.json")} << json.dump();
  }

  static std::string mpirun(int ranks) {
    return VRAMLAB_MPIRUN " --allow-run-as-root --oversubscribe --quiet --mca plm isolated -n " +
           std::to_string(ranks) + " ";
  }

  /// Runs the program on that many ranks.
  Ran on_ranks(int ranks, const std::string& arguments) const {
    const std::string command = "cd '" + folder.path().string() + "' && " + mpirun(ranks) +
                                "'" VRAMLAB_PROGRAM "' " + arguments + " >rank-out 2>rank-err";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), text("rank-out"), text("rank-err")};
  }

  static pid_t last_child(pid_t process) {
    pid_t last = 0;
    const std::filesystem::path threads = "/proc/" + std::to_string(process) + "/task";
    for (const auto& thread : std::filesystem::directory_iterator(threads)) {
      std::ifstream children{thread.path() / "children"};
      for (pid_t one = 0; children >> one;) last = std::max(last, one);
    }
    EXPECT_GT(last, 0);
    return last;
  }

  std::string text(const std::string& file) const { return read_input_file(folder.file(file)); }
};

TEST_F(RanksTest, ASweepIsTheSameBytesAsOnThreads) {
  const Ran threads = run("compare sweep.json -j 1 --results one.jsonl --json one.json");
  const Ran ranks = on_ranks(4, "compare sweep.json --results four.jsonl --json four.json");
  ASSERT_EQ(ranks.code, 0) << ranks.err;
  EXPECT_EQ(text("four.jsonl"), text("one.jsonl"));
  EXPECT_EQ(text("four.json"), text("one.json"));
  EXPECT_EQ(ranks.out.substr(0, ranks.out.find("wrote")), threads.out.substr(0, threads.out.find("wrote")));
  EXPECT_EQ(ranks.err, "");
}

TEST_F(RanksTest, MatrixCheckAndSeedsAreTheSameBytesAsOnThreads) {
  Json json = read_json_file(folder.file("sweep.json"));
  json.erase("sweep");
  json["expect"] = Json::parse(R"([{"policy": "fixed", "metric": "ooms", "equals": 0},
                                   {"policy": "rule", "metric": "ooms", "equals": 7}])");
  std::ofstream{folder.file("random.json")} << json.dump();
  write_scenario("other.json");
  for (const char* command : {"matrix random.json other.json --seeds 6", "check random.json other.json",
                              "compare random.json other.json --seeds 6"}) {
    const std::string line = command;
    const Ran threads = run(line + " -j 1 --json one.json --results one.jsonl");
    const Ran ranks = on_ranks(4, line + " --json four.json --results four.jsonl");
    EXPECT_EQ(ranks.code, threads.code) << line << ranks.err;
    EXPECT_EQ(text("four.json"), text("one.json")) << line;
    EXPECT_EQ(text("four.jsonl"), text("one.jsonl")) << line;
    for (const char* file : {"one.jsonl", "four.jsonl"}) std::filesystem::remove(folder.file(file));
  }
}

// mpirun ends a job of which a rank is killed. What had ended by then is kept, and the same command goes on.
TEST_F(RanksTest, ARankThatIsKilledLosesNoFinishedRun) {
  ASSERT_EQ(run("compare sweep.json --results whole.jsonl").code, 0);
  const auto kill_last_rank = [](pid_t job) { ::kill(last_child(last_child(job)), SIGKILL); };
  const std::string command =
      "exec " + mpirun(4) + "'" VRAMLAB_PROGRAM "' compare sweep.json --results killed.jsonl >out 2>err";
  const int status = act_at(command, folder, "killed.jsonl", 12, kill_last_rank);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_THAT(text("err"), HasSubstr("ended by signal 9 (Killed)"));
  const std::int64_t kept = lines_of(folder.file("killed.jsonl"));
  EXPECT_GE(kept, 12);
  EXPECT_EQ(kept % 3, 0);
  const Ran rest = on_ranks(4, "compare sweep.json --results killed.jsonl --resume");
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(text("killed.jsonl"), text("whole.jsonl"));
}

TEST_F(RanksTest, AnInterruptSaysHowToGoOn) {
  Json json = read_json_file(folder.file("sweep.json"));
  json["sweep"][0]["to"] = 500;
  std::ofstream{folder.file("long.json")} << json.dump();
  const std::string command =
      "exec " + mpirun(4) + "'" VRAMLAB_PROGRAM "' compare long.json --results part.jsonl >out 2>err";
  act_at(command, folder, "part.jsonl", 9, [](pid_t job) { ::kill(job, SIGINT); });
  EXPECT_THAT(text("err"),
              HasSubstr(" of 2000 runs. They are in part.jsonl; the same command goes on from there."));
}

TEST_F(RanksTest, WhatIsWrongIsSaidOnceAndEndsAllRanks) {
  const Ran missing = on_ranks(3, "compare absent.json");
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, StartsWith("absent.json: "));
  EXPECT_EQ(missing.err.find("absent.json: "), missing.err.rfind("absent.json: "));
  EXPECT_THAT(on_ranks(2, "compare sweep.json -j 2").err, StartsWith("--jobs: is for threads"));
  EXPECT_THAT(on_ranks(2, "compare plain.json").err, StartsWith("mpirun: ranks share the runs of a sweep"));
}

TEST_F(RanksTest, OtherVerbsRunOnEveryRank) {
  const std::string one = run("metrics search").out;
  const Ran both = on_ranks(2, "metrics search");
  EXPECT_EQ(both.code, 0);
  EXPECT_EQ(both.out.size(), 2 * one.size());
}

// A run that cannot be made is the same error as on threads, and the others are kept.
TEST_F(RanksTest, ARunThatCannotBeMadeLosesNoOther) {
  Json json = read_json_file(folder.file("sweep.json"));
  json["sweep"] = Json::parse(R"([{"vary": "/device/total", "over": ["9000MiB", "10MiB", "10000MiB"]}])");
  std::ofstream{folder.file("small.json")} << json.dump();
  const Ran threads = run("compare small.json --results one.jsonl");
  ASSERT_EQ(threads.code, 2);
  const Ran ranks = on_ranks(4, "compare small.json --results four.jsonl");
  EXPECT_EQ(ranks.code, 2);
  EXPECT_THAT(ranks.err, StartsWith(threads.err));
  EXPECT_EQ(text("four.jsonl"), text("one.jsonl"));
}

TEST_F(RanksTest, ARankWithOtherFilesIsNamed) {
  Json json = read_json_file(folder.file("sweep.json"));
  json["device"]["total"] = "11000MiB";
  std::ofstream{folder.file("other.json")} << json.dump();
  const std::string program = "'" VRAMLAB_PROGRAM "' compare ";
  const std::string line = "cd '" + folder.path().string() + "' && " + mpirun(2) + program +
                           "sweep.json : -n 1 " + program + "other.json >out 2>err";
  EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 2);
  EXPECT_THAT(text("err"), StartsWith("rank 2 on "));
  EXPECT_THAT(text("err"), HasSubstr("has other files than rank 0"));
}

}  // namespace
}  // namespace vramlab
