// Sweeps, pictures and completion, as a user meets them.
#include <algorithm>
#include <cstdlib>
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

class SweepCliTest : public CliTest {
 protected:
  // The small scenario of the rig at 3 totals and 4 steps of its rule.
  void write_sweep(const std::string& name) const {
    write_scenario("plain.json");
    Json json = read_json_file(folder.file("plain.json"));
    json["sweep"] = Json::parse(R"([{"vary": "/device/total", "over": ["9000MiB", "10000MiB", "12000MiB"]},
                                    {"vary": "/policies/rule/step", "from": 1, "to": 4}])");
    std::ofstream{folder.file(name)} << json.dump();
  }

  std::string text(const std::string& file) const { return read_input_file(folder.file(file)); }

  /// Runs a line of the shell in the folder.
  [[nodiscard]] int shell(const std::string& line) const {
    return std::system(("cd '" + folder.path().string() + "' && " + line).c_str());
  }
};

TEST_F(SweepCliTest, ResultsAreTheSameBytesAtAnyNumberOfThreads) {
  write_sweep("sweep.json");
  const Ran one = run("compare sweep.json --results one.jsonl -j 1 --json one.json");
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(run("compare sweep.json --results two.jsonl -j 2 --json two.json").code, 0);
  EXPECT_EQ(text("one.jsonl"), text("two.jsonl"));
  EXPECT_EQ(text("one.json"), text("two.json"));
  const std::string lines = text("one.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 36);  // 12 runs of fixed, rule and the oracle
  EXPECT_THAT(one.out, HasSubstr("small: 12 runs of 3 policies\n"));
  EXPECT_THAT(one.out, HasSubstr("total \\ step"));
}

TEST_F(SweepCliTest, ASecondCallRunsNothingAgain) {
  write_sweep("sweep.json");
  run("compare sweep.json --results all.csv");
  const std::string before = text("all.csv");
  const Ran again = run("compare sweep.json --results all.csv");
  EXPECT_THAT(again.out, HasSubstr("12 runs of 3 policies, 12 of them from all.csv"));
  EXPECT_EQ(text("all.csv"), before);
}

// "objective" is a key and a metric, "ooms" a metric: columns of the file by both names.
TEST_F(SweepCliTest, AnAxisMayHaveTheNameOfAMetric) {
  write_scenario("plain.json");
  Json json = read_json_file(folder.file("plain.json"));
  json["sweep"] = Json::parse(R"([{"vary": "/objective", "over": ["samples_per_s", "pixels_per_s"]},
                                  {"vary": "/device/total", "name": "ooms", "over": ["7000MiB", "12000MiB"]}])");
  std::ofstream{folder.file("sweep.json")} << json.dump();
  for (const char* name : {"all.csv", "all.jsonl"}) {
    const std::string command = std::string{"compare sweep.json --json result.json --results "} + name;
    ASSERT_EQ(run(command).code, 0) << name;
    const std::string before = text("result.json");
    const Ran again = run(command);
    EXPECT_THAT(again.out, HasSubstr(std::string{"4 of them from "} + name)) << again.err;
    EXPECT_EQ(text("result.json"), before) << name;
  }
  json["sweep"][1]["name"] = "metrics";
  std::ofstream{folder.file("sweep.json")} << json.dump();
  EXPECT_THAT(run("compare sweep.json").err, HasSubstr("the name \"metrics\" is taken"));
}

// What was kept follows the sweep, also where no run is new.
TEST_F(SweepCliTest, ResultsAreInTheOrderAndUnderTheNamesOfTheSweep) {
  write_sweep("sweep.json");
  run("compare sweep.json --results old.jsonl");
  Json json = read_json_file(folder.file("sweep.json"));
  json["sweep"][0]["name"] = "card";
  json["sweep"][1] = Json::parse(R"({"vary": "/policies/rule/step", "over": [4, 3, 2, 1]})");
  std::ofstream{folder.file("sweep.json")} << json.dump();
  EXPECT_THAT(run("compare sweep.json --results old.jsonl").out, HasSubstr("wrote old.jsonl\n"));
  run("compare sweep.json --results new.jsonl");
  EXPECT_EQ(text("old.jsonl"), text("new.jsonl"));
  EXPECT_THAT(run("compare sweep.json --results old.jsonl").out, testing::Not(HasSubstr("wrote")));
}

TEST_F(SweepCliTest, ResultsThatCannotBeWrittenAreFoundBeforeAnythingRuns) {
  write_sweep("sweep.json");
  const Ran ran = run("compare sweep.json --results absent/all.jsonl");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, StartsWith("absent/all.jsonl: "));
}

TEST_F(SweepCliTest, AStoppedSweepKeepsWhatIsDoneAndGoesOnFromThere) {
  write_sweep("sweep.json");
  run("compare sweep.json --results whole.jsonl");
  // Half of the lines are what a sweep stopped after 6 runs has left.
  const std::string whole = text("whole.jsonl");
  std::size_t end = 0;
  for (int line = 0; line < 18; ++line) end = whole.find('\n', end) + 1;
  std::ofstream{folder.file("half.jsonl")} << whole.substr(0, end);
  const Ran rest = run("compare sweep.json --results half.jsonl --resume");
  EXPECT_THAT(rest.out, HasSubstr("6 of them from half.jsonl"));
  EXPECT_EQ(text("half.jsonl"), whole);
}

TEST_F(SweepCliTest, AnInterruptEndsWith130AndSaysHowToGoOn) {
  write_scenario("plain.json");
  Json json = read_json_file(folder.file("plain.json"));
  json["workload"]["iterations"] = 2000;
  json["sweep"] = Json::parse(R"([{"vary": "/seed", "from": 1, "to": 2000}])");
  std::ofstream{folder.file("long.json")} << json.dump();
  // The shell waits until the program runs for sure, and sends what Ctrl-C sends.
  ASSERT_EQ(shell("('" VRAMLAB_PROGRAM "' compare long.json --results long.jsonl -j 1 >out 2>err & "
                  "p=$!; sleep 1; kill -INT $p; wait $p; echo $? >code)"),
            0);
  EXPECT_EQ(text("code"), "130\n") << text("err");
  EXPECT_THAT(text("err"),
              HasSubstr(" of 2000 runs. They are in long.jsonl; the same command goes on from there."));
  const std::string lines = text("long.jsonl");
  const auto rows = std::count(lines.begin(), lines.end(), '\n');
  EXPECT_EQ(rows % 3, 0);  // whole runs
  EXPECT_LT(rows, 6000);
}

// Killed at any moment: all runs that had ended are in the file, and going on ends with the same bytes.
TEST_F(SweepCliTest, AKilledSweepKeepsWhatHadEndedAndGoesOnToTheSameBytes) {
  write_scenario("plain.json");
  Json json = read_json_file(folder.file("plain.json"));
  json["workload"]["iterations"] = 500;
  json["sweep"] = Json::parse(R"([{"vary": "/seed", "from": 1, "to": 150}])");
  std::ofstream{folder.file("sweep.json")} << json.dump();
  ASSERT_EQ(run("compare sweep.json --results whole.jsonl").code, 0);
  std::mt19937 random{7};
  std::uniform_int_distribution<std::int64_t> more{0, 24};  // lines: three a run
  for (int moment = 1; moment <= 20; ++moment) {            // each further on than the one before
    const std::int64_t lines = lines_of(folder.file("killed.jsonl")) + more(random);
    act_at("exec '" VRAMLAB_PROGRAM "' compare sweep.json --results killed.jsonl -j 2 >out 2>err", folder,
           "killed.jsonl", lines, [](pid_t program) { ::kill(program, SIGKILL); });
    if (!std::filesystem::exists(folder.file("killed.jsonl"))) continue;
    const std::string text_so_far = text("killed.jsonl");
    EXPECT_TRUE(text_so_far.empty() || text_so_far.back() == '\n');
  }
  const Ran rest = run("compare sweep.json --results killed.jsonl");
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(text("killed.jsonl"), text("whole.jsonl"));
}

TEST_F(SweepCliTest, FilesAreWrittenAlsoWhenNobodyReadsTheText) {
  write_sweep("sweep.json");
  ASSERT_EQ(run("compare sweep.json --results whole.jsonl --json whole.json").code, 0);
  ASSERT_EQ(shell("{ '" VRAMLAB_PROGRAM "' compare sweep.json --results piped.jsonl --json piped.json 2>err; "
                  "echo $? >code; } | true"),
            0);
  EXPECT_EQ(text("code"), "0\n") << text("err");
  EXPECT_EQ(text("piped.jsonl"), text("whole.jsonl"));
  EXPECT_EQ(text("piped.json"), text("whole.json"));
}

TEST_F(SweepCliTest, ResumeNeedsSomethingToGoOnWith) {
  write_sweep("sweep.json");
  const Ran none = run("compare sweep.json --results all.jsonl --resume");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, StartsWith("all.jsonl: there is nothing to go on with"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("all.jsonl")));
  EXPECT_EQ(run("compare sweep.json --resume").code, 2);
}

TEST_F(SweepCliTest, AFileOfResultsIsOneProgramsAtATime) {
  write_sweep("sweep.json");
  ASSERT_EQ(shell(": >all.jsonl && flock all.jsonl '" VRAMLAB_PROGRAM
                  "' compare sweep.json --results all.jsonl >out 2>err; echo $? >code"),
            0);
  EXPECT_EQ(text("code"), "2\n");
  EXPECT_THAT(text("err"), StartsWith("all.jsonl: another program is writing it."));
}

TEST_F(SweepCliTest, PartsMadeApartAreTheWholeWhenMerged) {
  write_sweep("sweep.json");
  ASSERT_EQ(run("compare sweep.json --results whole.jsonl").code, 0);
  for (const char* part : {"1", "2", "3"}) {
    const std::string number = part;
    const Ran ran = run("compare sweep.json --shard " + number + "/3 --results " + number + ".jsonl");
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("small: 4 runs of 3 policies, part " + number + " of 3\n"));
  }
  const Ran two = run("merge sweep.json 1.jsonl 3.jsonl --results all.jsonl");
  EXPECT_EQ(two.code, 1);
  EXPECT_THAT(two.out, HasSubstr("4 runs are in none of the files.\n"));
  const Ran all = run("merge sweep.json 2.jsonl 3.jsonl --results all.jsonl");  // the first is in it already
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(text("all.jsonl"), text("whole.jsonl"));
  EXPECT_THAT(run("merge sweep.json 4.jsonl --results all.jsonl").err, HasSubstr("4.jsonl: does not exist."));
  EXPECT_THAT(run("merge sweep.json 1.jsonl").err, StartsWith("--results: is missing"));
  EXPECT_THAT(run("compare sweep.json --shard 1/3").err, HasSubstr("name one with --results"));
  // Another part's file: its runs stay, and are not said to be of this part.
  EXPECT_THAT(
      run("compare sweep.json --shard 3/3 --results 2.jsonl").out,
      HasSubstr("small: 8 runs of 3 policies, part 3 of 3, 4 of them from 2.jsonl, 4 of other parts\n"));
  EXPECT_EQ(run("merge sweep.json 1.jsonl 2.jsonl --results both.jsonl").code, 0);
  EXPECT_EQ(text("both.jsonl"), text("whole.jsonl"));
}

TEST_F(SweepCliTest, SaysWhatDoesNotGoTogether) {
  write_sweep("sweep.json");
  write_scenario("plain.json");
  EXPECT_THAT(run("compare sweep.json plain.json").err, HasSubstr("alone"));
  EXPECT_THAT(run("compare sweep.json --results a.txt").err, HasSubstr(".jsonl or .csv"));
  EXPECT_THAT(run("compare sweep.json --metric regrte").err, HasSubstr("Did you mean \"regret\"?"));
  EXPECT_THAT(run("compare plain.json --results a.csv").err, HasSubstr("\"sweep\""));
  EXPECT_EQ(run("compare sweep.json --picture a.svg").code, 2);
}

TEST_F(CliTest, PlotDrawsTracesAndTheResultsThatNameThem) {
  write_scenario("small.json");
  run("compare small.json --trace-dir traces --json result.json");
  EXPECT_EQ(run("plot result.json -o result.svg").code, 0);
  const std::string picture = read_input_file(folder.file("result.svg"));
  for (const char* text : {"small", "fixed", "rule", "oracle", "peak allocated", "batch"})
    EXPECT_THAT(picture, HasSubstr(text));
  run("run small.json --policy rule --trace rule.csv");
  EXPECT_EQ(run("plot rule.csv traces/fixed.jsonl --title Both -o both.png").code, 0);
  EXPECT_EQ(read_input_file(folder.file("both.png")).substr(1, 3), "PNG");
}

TEST_F(CliTest, PlotSaysWhatIsMissing) {
  write_scenario("small.json");
  run("compare small.json --json bare.json");
  EXPECT_THAT(run("plot bare.json -o a.svg").err, HasSubstr("--trace-dir"));
  EXPECT_THAT(run("plot small.json -o a.svg").err, StartsWith("small.json: is a scenario; give a result "));
  std::ofstream{folder.file("bad.jsonl")} << "{\"iteration\": 1, \"oom\": false}\n";
  EXPECT_THAT(run("plot bad.jsonl -o a.svg").err, StartsWith("bad.jsonl: line 1: "));
  EXPECT_THAT(run("plot bad.jsonl").err, HasSubstr("-o FILE.svg"));
}

// Queues, epochs and searches write traces of their own kind: plot says so of each file and of the results.
TEST_F(CliTest, PlotDrawsTrainingRunsOnly) {
  const std::string scenarios = std::string{VRAMLAB_SOURCE_DIR} + "/scenarios/";
  EXPECT_EQ(run("compare " + scenarios + "queue-race.json --trace-dir queue --json queue.json").code, 0);
  EXPECT_EQ(run("compare " + scenarios + "epoch-restarts.json --trace-dir epoch --json epoch.json").code, 0);
  for (const char* file :
       {"queue/faithful.csv", "queue/faithful.jobs.csv", "queue/faithful.monitor.csv", "queue/faithful.jsonl",
        "queue.json", "epoch.json", "epoch/mixed/batch_metrics.json"}) {
    const Ran ran = run(std::string{"plot "} + file + " -o a.svg");
    EXPECT_EQ(ran.code, 2) << file;
    EXPECT_THAT(ran.err, StartsWith(std::string{file} + ": is ")) << file;
    EXPECT_THAT(ran.err, HasSubstr("training")) << file;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << file;
  }
}

TEST_F(CliTest, CompletionIsAScriptItsShellTakes) {
  const Ran bash = run("completion bash -o vramlab.bash");
  EXPECT_EQ(bash.code, 0);
  const std::string script = folder.file("vramlab.bash");
  EXPECT_EQ(std::system(("bash -n '" + script + "'").c_str()), 0);
  // What bash offers behind "vramlab compare --rep".
  const std::string ask =
      "bash -c \". '" + script +
      "'; COMP_WORDS=(vramlab compare --rep); COMP_CWORD=2; _vramlab; echo \\${COMPREPLY[@]}\" >'" +
      folder.file("offered") + "'";
  EXPECT_EQ(std::system(ask.c_str()), 0);
  EXPECT_EQ(read_input_file(folder.file("offered")), "--report\n");
  EXPECT_THAT(run("completion zsh").out, StartsWith("#compdef vramlab\n"));
  EXPECT_THAT(run("completion fish").out, HasSubstr("__fish_seen_subcommand_from compare' -l report -r"));
  EXPECT_EQ(run("completion csh").code, 2);
}

TEST_F(CliTest, TheManPageNamesEveryVerbOfTheHelp) {
  const std::string page = run("completion man").out;
  EXPECT_THAT(page, StartsWith(".TH VRAMLAB 1"));
  for (const char* verb : {"compare", "whatif", "plot", "metrics"}) {
    EXPECT_THAT(page, HasSubstr(std::string{".SS \"vramlab "} + verb));
  }
}

// A terminal has 100 columns.
TEST_F(CliTest, TablesStayWithinATerminal) {
  write_scenario("small.json");
  for (const char* command :
       {"compare small.json", "policies", "policies dual-optimizer", "policies job-queue", "gpus", "models",
        "schema --keys training", "schema --keys epoch"}) {
    const std::string out = run(command).out;
    std::size_t line = 0;
    for (std::size_t begin = 0; begin < out.size(); begin = line + 1) {
      line = std::min(out.find('\n', begin), out.size());
      const std::string text = out.substr(begin, line - begin);
      const std::size_t begin_of_words = std::min(text.find_first_not_of(' '), text.size());
      const bool sentence =
          text.find("  ", begin_of_words) == std::string::npos;  // the terminal breaks prose
      const auto cells = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_TRUE(sentence || cells <= 100) << command << ": " << text;
    }
  }
}

}  // namespace
}  // namespace vramlab
