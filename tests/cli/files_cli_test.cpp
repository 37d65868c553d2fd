// What the program does with files: what it reads stays as it was, standard input is one, none is too large
// without a word.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "recordings/input_file.hpp"
#include "tests/cli/cli_rig.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class FilesCliTest : public CliTest {};

// By another spelling, through a link of either sort, and of the files that a scenario or an option names.
TEST_F(FilesCliTest, NothingThatIsReadIsOverwritten) {
  namespace fs = std::filesystem;
  write_scenario("small.json");
  fs::copy_file(VRAMLAB_SOURCE_DIR "/models/lstm.json", folder.file("m.json"));
  fs::copy_file(VRAMLAB_SOURCE_DIR "/tests/data/grids/lstm.json", folder.file("g.json"));
  fs::create_symlink("m.json", folder.file("soft.json"));
  fs::create_hard_link(folder.file("m.json"), folder.file("hard.json"));
  fs::create_hard_link(folder.file("m.json"), folder.file("hard.jsonl"));
  std::ofstream{folder.file("t.json")} << R"({"version": 1, "kind": "training", "name": "t",
      "device": {"total": "8GiB"}, "workload": {"model": "m.json", "iterations": 3, "start": {"batch": 4, "seq": 32}},
      "policies": [{"use": "fixed", "label": "jobs"}], "expect": [{"policy": "jobs", "metric": "ooms", "equals": 0}]})";
  std::ofstream{folder.file("jobs.jsonl")}
      << R"({"jobs": [{"model": "m.json", "steps": 5, "batch": 4, "at": {"seq": 32}}]})";
  std::ofstream{folder.file("q.json")}
      << R"({"version": 1, "kind": "jobs", "name": "q", "cards": [{"total": "8GiB"}],
      "trace": {"jobs": "jobs.jsonl"}, "policies": [{"use": "job-queue", "label": "jobs"}]})";
  std::ofstream{folder.file("samples.csv")} << "task,mb\nT1,9000\n";
  for (const std::string command :
       {"compare t.json --json m.json", "compare t.json --json ./../$(basename $PWD)/m.json",
        "compare t.json --json soft.json", "compare t.json --json hard.json",
        "run t.json --trace hard.jsonl --json r.json", "run t.json --export m.json",
        "check t.json --junit m.json", "check t.json --json m.json", "matrix t.json --json soft.json",
        "compare q.json --json m.json", "compare q.json --json jobs.jsonl", "compare q.json --trace-dir .",
        "predict m.json --json hard.json", "predict m.json --against g.json --json g.json",
        "estimate --samples 10 --calibration samples.csv --json samples.csv",
        "policies --plugin m.json --json m.json"}) {
    const std::string model = read_input_file(folder.file("m.json"));
    const Ran ran = run(command);
    EXPECT_EQ(ran.code, 2) << command;
    EXPECT_THAT(ran.err, HasSubstr("is read and would be overwritten")) << command;
    EXPECT_EQ(read_input_file(folder.file("m.json")), model) << command;
  }
  EXPECT_EQ(run("compare t.json --trace-dir . --json r.json").code, 0);
  EXPECT_EQ(run("compare t.json --trace-dir . --json r.json").code, 0);  // its own files it replaces
}

// The history goes by and is not kept: at 100,000 steps it alone was 350 MB.
TEST_F(FilesCliTest, AReportOfALongRunNeedsNoMoreMemoryThanTheRun) {
  write_scenario("small.json");
  std::string text = read_input_file(folder.file("small.json"));
  text.replace(text.find("\"iterations\": 50"), 16, "\"iterations\": 100000");
  std::ofstream{folder.file("long.json")} << text;
  const auto limited = [&](const std::string& kilobytes, const std::string& arguments) {
    const std::string command = "cd '" + folder.path().string() + "' && ulimit -v " + kilobytes +
                                " && '" VRAMLAB_PROGRAM "' " + arguments + " --quiet 2>err";
    return WEXITSTATUS(std::system(command.c_str()));
  };
  if (run("run small.json --policy fixed --report r.html").err.find("no chart library") ==
      std::string::npos) {
    EXPECT_EQ(limited("250000", "run long.json --policy fixed --report r.html"), 0)
        << read_input_file(folder.file("err"));
  }
  text.replace(text.find("100000"), 6, "1000000");  // 144 MB of steps
  std::ofstream{folder.file("longer.json")} << text;
  EXPECT_EQ(limited("60000", "run longer.json --policy fixed"), 2);
  EXPECT_THAT(read_input_file(folder.file("err")), StartsWith("longer.json: is too large for the memory"));
}

TEST_F(FilesCliTest, StandardInputIsAFileLikeAnyOther) {
  write_scenario("small.json");
  for (const std::string command : {"check - < small.json", "check /dev/stdin < small.json",
                                    "cat small.json | check -", "cat small.json | check /dev/stdin"}) {
    const std::size_t pipe = command.find("| ");
    const std::string program = "'" VRAMLAB_PROGRAM "' ";
    const std::string whole = pipe == std::string::npos
                                  ? program + command
                                  : command.substr(0, pipe + 2) + program + command.substr(pipe + 2);
    const std::string shell = "cd '" + folder.path().string() + "' && " + whole + " > out 2>&1";
    EXPECT_EQ(std::system(shell.c_str()), 0) << command << read_input_file(folder.file("out"));
  }
  const std::string recording = VRAMLAB_SOURCE_DIR "/tests/data/recorded/lstm.pickle.gz";
  EXPECT_EQ(run("verify - < " + recording).code, 0);
  EXPECT_EQ(
      run("verify " + recording + " --max-inflated 10KiB").err,
      recording + ": unpacks to more than 10.0 KiB. If that is right, allow more: --max-inflated 40KiB.\n");
  EXPECT_THAT(run("verify " + recording + " --max-inflated much").err,
              StartsWith("--max-inflated: \"much\" is not"));
  EXPECT_EQ(run("verify missing.pickle").err, "missing.pickle: does not exist.\n");
}

}  // namespace
}  // namespace vramlab
