// The program as a user runs it: exit codes, what is printed where, what is written.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/units.hpp"
#include "lab/json.hpp"
#include "recordings/input_file.hpp"
#include "tests/cli/cli_rig.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(CliTest, WithoutAVerbItSaysWhatThereIs) {
  const Ran ran = run("");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.out, HasSubstr("compare"));
}

// Whatever else the line holds or lacks: required options and operands, too.
TEST_F(CliTest, HelpOfEveryVerbEndsWithZeroAndNamesTheExitCodes) {
  const Ran all = run("help");
  EXPECT_EQ(all.code, 0);
  std::istringstream lines{all.out};
  int verbs = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) continue;
    ++verbs;
    const std::string verb = line.substr(2, line.find(' ', 2) - 2);
    const Ran ran = run("help " + verb);
    EXPECT_EQ(ran.code, 0) << verb;
    EXPECT_THAT(
        ran.out,
        HasSubstr("exit codes: 0 done, 1 an expectation failed, 2 bad input or usage, 3 internal error"));
    for (const char* rest : {" --help", " --help none.json", " a.json b.json c.json --help --quiet"}) {
      const Ran again = run(verb + rest);
      EXPECT_EQ(again.code, 0) << verb << rest << ": " << again.err;
      EXPECT_EQ(again.out, ran.out) << verb << rest;
    }
  }
  EXPECT_EQ(verbs, 25);
}

TEST_F(CliTest, EveryVerbHasOneRowInTheDocument) {
  const std::string document = read_input_file(VRAMLAB_SOURCE_DIR "/docs/cli.md");
  std::istringstream help{run("help").out};
  int verbs = 0;
  for (std::string line; std::getline(help, line);) {
    if (!line.starts_with("  ")) continue;
    ++verbs;
    const std::string row = "\n| `" + line.substr(2, line.find(' ', 2) - 2);
    const std::size_t at = std::min(document.find(row + " "), document.find(row + "`"));
    ASSERT_NE(at, std::string::npos) << line;
    EXPECT_EQ(std::min(document.find(row + " ", at + 1), document.find(row + "`", at + 1)), std::string::npos)
        << line;
  }
  EXPECT_EQ(verbs, 25);
}

TEST_F(CliTest, AWrongNameIsAnsweredWithTheNearestRightOne) {
  EXPECT_THAT(run("comprae x.json").err, HasSubstr("Did you mean \"compare\"?"));
  EXPECT_THAT(run("compare x.json --pictrue a.svg").err, HasSubstr("Did you mean \"--picture\"?"));
  EXPECT_THAT(run("policies dual-optimiser").err, HasSubstr("Did you mean \"dual-optimizer\"?"));
  EXPECT_EQ(run("comprae x.json").code, 2);
}

TEST_F(CliTest, ComparePrintsVerdictTableAndFiles) {
  write_scenario("small.json");
  const Ran ran = run("compare small.json --json result.json --trace-dir traces");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("Best: fixed, 11.1 % short of the best safe fixed choice (9).\n"));
  EXPECT_THAT(ran.out, HasSubstr("\noracle "));
  EXPECT_THAT(ran.out, HasSubstr("wrote traces/rule.jsonl\n"));
  EXPECT_THAT(ran.out, HasSubstr("wrote result.json\n"));
  const Json result = read_json_file(folder.file("result.json"));
  EXPECT_EQ(result["policies"].size(), 3u);
  EXPECT_EQ(result["policies"][0]["final"]["batch"], 8);
  EXPECT_EQ(result["policies"][1]["adjustments"][0]["from"]["batch"], 8);
}

TEST_F(CliTest, JsonOnStandardOutputIsAlone) {
  write_scenario("small.json");
  const Ran ran = run("compare small.json --json -");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(Json::parse(ran.out)["scenario"], "small");
}

TEST_F(CliTest, TablesComeAsMarkdownAndCsv) {
  write_scenario("small.json");
  EXPECT_THAT(run("compare small.json --format md").out, HasSubstr("| policy | final (batch) |"));
  EXPECT_THAT(run("compare small.json --format csv").out, HasSubstr("policy,final (batch),peak"));
  const Ran wrong = run("compare small.json --format html");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("Write text, md or csv."));
}

TEST_F(CliTest, TwoRunsGiveTheSameBytes) {
  write_scenario("small.json");
  EXPECT_EQ(run("compare small.json --json -").out, run("compare small.json --json -").out);
}

TEST_F(CliTest, CheckEndsWithOneWhereAnExpectationFails) {
  write_scenario("good.json");
  write_scenario("bad.json", R"([{"policy": "fixed", "metric": "iterations", "max": 10}])");
  EXPECT_EQ(run("check good.json").code, 0);
  const Ran ran = run("check . -j 2 --json -");
  EXPECT_EQ(ran.code, 1);
  const Json result = Json::parse(ran.out);
  EXPECT_EQ(result["passed"], 1);
  EXPECT_EQ(result["failed"], 1);
  EXPECT_THAT(run("check bad.json").out, HasSubstr("FAIL bad.json: fixed iterations 50 (<= 10)"));
}

// `check` runs only what expectations name: here one policy only as what another is measured by.
TEST_F(CliTest, CheckRunsThePoliciesThatExpectationsName) {
  write_scenario("small.json", R"([{"policy": "oracle", "metric": "ooms", "equals": 0},
    {"policy": "rule", "metric": "samples_per_s", "relative_to": "fixed", "min": 1}])");
  const Ran ran = run("check small.json");
  EXPECT_EQ(ran.code, 0) << ran.out;
}

TEST_F(CliTest, FoldersAreSearchedPastWhatIsNoFile) {
  std::filesystem::create_directory(folder.file("folder.json"));
  std::filesystem::create_symlink("loop", folder.file("loop"));
  std::filesystem::create_symlink("other.json", folder.file("other.json"));
  EXPECT_THAT(run("check .").err, HasSubstr("other.json"));
  std::filesystem::remove(folder.file("other.json"));
  EXPECT_THAT(run("check .").err, HasSubstr("holds no scenario files (*.json)."));
  write_scenario("folder.json/small.json");
  EXPECT_EQ(run("check .").code, 0);
}

// Two labels may differ only in what names of files leave out.
TEST_F(CliTest, EveryPolicyOfAnEpochHasAFolderOfItsOwn) {
  Json json = read_json_file(VRAMLAB_SOURCE_DIR "/scenarios/epoch-restarts.json");
  json.erase("expect");
  const Json policy = json["policies"][0];
  json["policies"] = Json::array();
  for (const char* label : {"a b", "a-b", ".."}) {
    json["policies"].push_back(policy);
    json["policies"].back()["label"] = label;
  }
  std::ofstream{folder.file("epoch.json")} << json.dump();
  const Ran ran = run("compare epoch.json --trace-dir traces");
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* name : {"traces/a-b", "traces/a-b-", "traces/--"})
    EXPECT_TRUE(std::filesystem::exists(folder.file(std::string{name} + "/batch_metrics.json"))) << name;
}

TEST_F(CliTest, ThreadsHaveARange) {
  write_scenario("small.json");
  for (const char* threads : {"-1", "1025"}) {
    const Ran ran = run(std::string{"check small.json --jobs="} + threads);
    EXPECT_EQ(ran.code, 2) << threads;
    EXPECT_THAT(ran.err, HasSubstr("is out of range; allowed is 1 to 1024, or 0 for all cores.")) << threads;
  }
  EXPECT_EQ(run("check small.json --jobs=1024").code, 0);
}

TEST_F(CliTest, AnEmptyListIsNamedAsAFileOfItsOwn) {
  std::ofstream{folder.file("empty.csv")};
  std::ofstream{folder.file("epoch.json")}
      << R"({"version": 1, "kind": "epoch", "name": "e", "device": {"total": "1GiB", "context": 0},
             "workload": {"sizes": {"per_token": "1MiB"}, "data": {"list": "empty.csv", "tasks": [{"name": "T1"}]}},
             "policies": [{"use": "planned-batches"}]})";
  const Ran ran = run("compare epoch.json");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "empty.csv: is empty; a header line is expected.\n");
}

// 14 samples take 1000 + 14 * 810 = 12,340 MiB of 10,000: every step fails.
TEST_F(CliTest, CheckShowsTheTraceAroundAFailure) {
  write_scenario("small.json",
                 R"([{"policy": "fixed", "oom": 1, "max": 0}, {"policy": "fixed", "oom": 1, "equals": 1},
    {"policy": "rule", "metric": "samples_per_s", "relative_to": "fixed", "max": 0}])");
  std::string text = read_input_file(folder.file("small.json"));
  const std::string start = "\"batch\": 8";
  std::ofstream{folder.file("bad.json")} << text.replace(text.find(start), start.size(), "\"batch\": 14");
  const Ran ran = run("check bad.json");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(
      ran.out,
      StartsWith("FAIL bad.json: fixed iteration of OOM 1 1 (<= 0); rule samples_per_s / that of fixed "));
  EXPECT_THAT(ran.out, testing::Not(HasSubstr("OOM 1 1 (= 1)")));  // holds
  EXPECT_THAT(ran.out, HasSubstr("     fixed iteration of OOM 1:\n     > iteration 1: batch 14, peak "));
  EXPECT_THAT(ran.out, HasSubstr(", OOM"));
}

TEST_F(CliTest, CheckWritesJUnitXmlAndTables) {
  write_scenario("good.json");
  write_scenario("bad.json", R"([{"policy": "fixed", "metric": "iterations", "max": 10}])");
  const Ran ran = run("check good.json bad.json --junit check.xml --format md");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("| FAIL | bad.json | fixed | iterations | 50 | <= 10 |"));
  const std::string xml = read_input_file(folder.file("check.xml"));
  EXPECT_THAT(xml, HasSubstr("<testsuites tests=\"2\" failures=\"1\">"));
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"good.json\" name=\"fixed ooms = 0\"/>"));
  EXPECT_THAT(xml, HasSubstr("<failure message=\"fixed iterations is 50 (&lt;= 10)\">"));
}

TEST_F(CliTest, CheckUpdatesExactValuesAndNothingElse) {
  write_scenario("old.json", R"([{"policy": "fixed", "metric": "iterations", "equals": 49}])");
  write_scenario("new.json", R"([{"policy": "fixed", "metric": "iterations", "equals": 50}])");
  const Ran ran = run("check old.json --update");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("fixed iterations: 49 -> 50\nwrote old.json"));
  EXPECT_EQ(read_input_file(folder.file("old.json")), read_input_file(folder.file("new.json")));
  EXPECT_EQ(run("check old.json").code, 0);
}

TEST_F(CliTest, RunWritesATraceOfEveryIteration) {
  write_scenario("small.json");
  EXPECT_EQ(run("run small.json --policy rule --trace t.csv").code, 0);
  const std::string trace = read_input_file(folder.file("t.csv"));
  EXPECT_EQ(std::count(trace.begin(), trace.end(), '\n'), 51);
  EXPECT_THAT(trace, StartsWith("iteration,start_s,duration_s,batch,oom,error,kept,allocated,"));
  EXPECT_EQ(run("run small.json --policy rule --trace t.jsonl").code, 0);
  EXPECT_THAT(run("run small.json --policy rule --trace t.txt").err,
              HasSubstr("must end in .jsonl, .csv or .perfetto.json"));
  EXPECT_THAT(run("run small.json").err, HasSubstr("several policies"));
}

// Bad input: one clear line, exit code 2, and the old output file stays as it was.
TEST_F(CliTest, BadInputTouchesNoOutputFile) {
  write_scenario("small.json");
  const std::string good = read_input_file(folder.file("small.json"));
  std::ofstream{folder.file("cut.json")} << good.substr(0, good.size() / 2);
  std::ofstream{folder.file("empty.json")};
  std::ofstream{folder.file("result.json")} << "precious";
  for (const char* input : {"cut.json", "empty.json", "missing.json", "."}) {
    const Ran ran = run(std::string{"compare "} + input + " --json result.json");
    EXPECT_EQ(ran.code, 2) << input;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(read_input_file(folder.file("result.json")), "precious");
}

TEST_F(CliTest, AnOutputThatCannotBeWrittenIsNamed) {
  write_scenario("small.json");
  const Ran missing = run("compare small.json --json no/such/folder/r.json --quiet");
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, StartsWith("no/such/folder/r.json: cannot be written:"));
  EXPECT_EQ(run("compare small.json --quiet >/dev/full").code, 0);
  const Ran full = run("compare small.json >/dev/full");
  EXPECT_EQ(full.code, 2);
  EXPECT_THAT(full.err, HasSubstr("standard output: could not be written."));
}

TEST_F(CliTest, MistakesInNamesOfFilesAreFoundBeforeAnythingRuns) {
  write_scenario("small.json");
  EXPECT_THAT(run("compare small.json --json small.json").err, HasSubstr("is read and would be overwritten"));
  EXPECT_THAT(run("compare small.json --json x.svg --picture x.svg").err, HasSubstr("is named twice"));
  EXPECT_EQ(run("compare small.json --picture x.gif").out, "");
  EXPECT_EQ(run("run small.json --policy rule --trace t.txt").out, "");
  EXPECT_EQ(run("compare small.json --policies nobody").out, "");
}

// Of every file and every kind, all that are wrong, before the first of them runs.
TEST_F(CliTest, LabelsThatAFileDoesNotHaveAreFoundBeforeAnythingRuns) {
  write_scenario("small.json");
  std::ofstream{folder.file("queue.json")}
      << R"({"version": 1, "kind": "jobs", "name": "two", "cards": [{"total": "10GiB"}],
      "jobs": [{"need": "6GiB", "duration_s": 10}], "policies": [{"use": "job-queue", "label": "queue"}]})";
  const Ran ran = run("compare small.json queue.json --policies fixed,nobody,rulle --json result.json");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("small.json: no policy is labelled \"nobody\"."));
  EXPECT_THAT(ran.err, HasSubstr("small.json: no policy is labelled \"rulle\". Did you mean \"rule\"?"));
  EXPECT_THAT(ran.err, HasSubstr("queue.json: no policy is labelled \"fixed\"."));
  EXPECT_THAT(ran.err, HasSubstr("queue.json: no policy is labelled \"nobody\"."));
  EXPECT_FALSE(std::filesystem::exists(folder.file("result.json")));
}

TEST_F(CliTest, VerifySaysHowExactlyARecordingIsReproduced) {
  const Ran ran = run("verify '" VRAMLAB_SOURCE_DIR "/tests/data/oracle/default_1.json.gz' --json -");
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Json file = Json::parse(ran.out)["files"][0];
  EXPECT_EQ(file["operations"], 3011);
  EXPECT_EQ(file["address_mismatches"], 0);
  EXPECT_EQ(file["counters_checked"], 63231);
  EXPECT_EQ(file["first_divergence"], nullptr);
  EXPECT_EQ(run("verify small.json").code, 2);
}

TEST_F(CliTest, HelpThatCannotBePrintedIsAnError) {
  for (const char* words : {"help", "--help", "help run", "run --help", "--version"}) {
    const Ran ran = run(std::string{words} + " >/dev/full");
    EXPECT_EQ(ran.code, 2) << words;
    EXPECT_EQ(ran.err, "standard output: could not be written.\n") << words;
  }
}

TEST_F(CliTest, AnEmptyLabelIsAnError) {
  write_scenario("small.json");
  for (const char* labels : {",", "fixed,", ",fixed", "fixed,,rule"}) {
    const Ran ran = run(std::string{"compare small.json --policies "} + labels);
    EXPECT_EQ(ran.code, 2) << labels;
    EXPECT_THAT(ran.err, HasSubstr("has an empty label")) << labels;
  }
  Json json = read_json_file(folder.file("small.json"));
  json["policies"][1]["label"] = "";
  std::ofstream{folder.file("small.json")} << json.dump();
  EXPECT_THAT(run("check small.json").err, StartsWith("small.json: /policies/1: \"label\" is empty."));
}

// K1-23 on standard input, and what is not a message.
TEST_F(CliTest, ExplainNamesTheCauseOfAMessage) {
  std::ofstream{folder.file("oom.txt")}
      << "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
         "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total "
         "capacty of "
         "79.15 GiB of which 38.09 GiB is free. Of the allocated memory 39.10 GiB is allocated by PyTorch, "
         "and 427.46 "
         "MiB is reserved by PyTorch but unallocated.\n";
  const Ran text = run("explain oom.txt");
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out,
              StartsWith("Cause: limit set by fraction. 64.00 MiB were asked for and 38.09 GiB are free"));
  const Ran ran = run("explain --json - <oom.txt");
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["layout"], "torch-sentences");
  EXPECT_EQ(json["figures"]["tried"], 64 << 20);
  EXPECT_EQ(json["cause"], "limit set by fraction");
  EXPECT_EQ(json["idle_bytes"], 448224297);
  EXPECT_FALSE(json["advice"].empty());
  for (const char* key : {"short_by_bytes", "others_bytes"}) EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(run("explain - <oom.txt --json -").out, ran.out);
  EXPECT_THAT(run("explain small.json").err, HasSubstr("small.json"));
  std::ofstream{folder.file("other.txt")} << "ValueError: no\n";
  EXPECT_EQ(run("explain other.txt").code, 2);
  EXPECT_THAT(run("explain </dev/null").err, HasSubstr("standard input: is empty."));
  std::ofstream{folder.file("stats.json")}
      << R"({"allocated_bytes.all.current": 1, "reserved_bytes.all.current": 5, "num_ooms": 1})";
  EXPECT_EQ(Json::parse(run("explain stats.json --json -").out)["layout"], "memory_stats");
}

TEST_F(CliTest, TheDocumentShowsWhatExplainPrints) {
  const std::string source = VRAMLAB_SOURCE_DIR "/docs/";
  const std::string document = read_input_file(source + "explain.md");
  for (const char* name : {"oom-fraction.txt", "oom-container.txt", "oom-open.txt", "oom-neighbour.txt"}) {
    const std::string file = source + "examples/" + name;
    EXPECT_THAT(document, HasSubstr(read_input_file(file))) << name;
    EXPECT_THAT(document, HasSubstr(run("explain '" + file + "'").out)) << name;
  }
  EXPECT_THAT(document, HasSubstr(run("explain --details '" + source + "examples/oom-neighbour.txt'").out));
}

// At most a screen without --details; figures, checks and advice with it.
TEST_F(CliTest, ExplainFitsAScreen) {
  const std::string examples = VRAMLAB_SOURCE_DIR "/docs/examples/";
  for (const char* name : {"oom-fraction.txt", "oom-container.txt", "oom-open.txt", "oom-neighbour.txt"}) {
    const std::string page = run("explain '" + examples + name + "'").out;
    EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 25) << name;
    EXPECT_THAT(page, Not(HasSubstr("would it have helped?"))) << name;
    EXPECT_THAT(run("explain --details '" + examples + name + "'").out, HasSubstr("would it have helped?"))
        << name;
  }
}

// Two ranks in one log: both, the first in the text in front; what stands beside a message goes into the
// JSON.
TEST_F(CliTest, ExplainTellsRanksApart) {
  const auto failure = [](const char* tried, const char* gpu) {
    return "CUDA out of memory. Tried to allocate " + std::string{tried} + ". GPU " + gpu +
           " has a total capacity of 79.15 GiB of which 10.00 MiB is free. Including non-PyTorch memory, "
           "this process "
           "has 79.10 GiB memory in use. Of the allocated memory 78.40 GiB is allocated by PyTorch, and "
           "60.00 MiB is "
           "reserved by PyTorch but unallocated.\n";
  };
  std::ofstream{folder.file("ranks.log")} << "[rank1]: " << failure("2.00 GiB", "1")
                                          << "[rank0]: " << failure("64.00 MiB", "0");
  const Ran ran = run("explain ranks.log");
  EXPECT_THAT(ran.out, HasSubstr("The text holds 2 messages; rank 1 is the first in it"));
  EXPECT_THAT(ran.out, HasSubstr("2. rank 0, 64.00 MiB asked on device 0: fragmentation"));
  const Json json = Json::parse(run("explain ranks.log --json -").out);
  EXPECT_EQ(json["messages"].size(), 2u);
  EXPECT_EQ(json["messages"][0]["writer"], "rank 1");
  EXPECT_EQ(json["cause"], "too big at any setting");
  std::ofstream{folder.file("stats.txt")} << "OrderedDict([('allocated_bytes.all.current', 5), "
                                             "('reserved_bytes.all.current', 9), ('num_ooms', 1)])\n";
  EXPECT_EQ(Json::parse(run("explain stats.txt --json -").out)["layout"], "memory_stats");
}

// Refused with room left: open, with possible causes.
TEST_F(CliTest, ExplainLeavesAVerdictOpen) {
  const Json json =
      Json::parse(run("explain '" VRAMLAB_SOURCE_DIR "/docs/examples/oom-open.txt' --json -").out);
  EXPECT_EQ(json["cause"], "undetermined");
  EXPECT_EQ(json["short_by_bytes"], nullptr);
  ASSERT_GE(json["possible_causes"].size(), 3u);
  for (const char* key : {"cause", "speaks_for", "how_to_tell"}) {
    EXPECT_FALSE(json["possible_causes"][0][key].get<std::string>().empty()) << key;
  }
}

// The exported history is whole, and replays to the byte.
TEST_F(CliTest, RunExportsASnapshotThatVerifyReproduces) {
  write_scenario("small.json");
  EXPECT_EQ(run("run small.json --policy rule --export h.pickle --json a.json --quiet").code, 0);
  EXPECT_EQ(run("run small.json --policy rule --json b.json --quiet").code, 0);
  EXPECT_EQ(read_input_file(folder.file("a.json")), read_input_file(folder.file("b.json")));
  const Ran ran = run("verify h.pickle --json -");
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Json file = Json::parse(ran.out)["files"][0];
  EXPECT_GT(file["addresses_checked"], 50);
  EXPECT_EQ(file["first_divergence"], nullptr);
  EXPECT_THAT(run("run small.json --policy rule --export h.pickle --max-entries 10").out,
              HasSubstr("older entries are not in it"));
  EXPECT_THAT(run("run small.json --policy rule --first-iterations 7").out, HasSubstr("in 7 iterations"));
}

TEST_F(CliTest, RunWritesATraceForPerfetto) {
  write_scenario("small.json");
  EXPECT_EQ(run("run small.json --policy rule --trace t.perfetto.json").code, 0);
  const Json trace = read_json_file(folder.file("t.perfetto.json"));
  std::map<std::string, int> phases;
  for (const Json& event : trace["traceEvents"]) ++phases[event["ph"].get<std::string>()];
  EXPECT_EQ(phases["X"], 50);
  EXPECT_EQ(phases["C"], 50 * 2 * 3);
  EXPECT_EQ(phases["M"], 2);
}

// One block of 20 MiB that torch's module.py allocated for C:\u\train.py:12.
TEST_F(CliTest, AttributesRecordingsFromWindows) {
  const std::filesystem::path shared = VRAMLAB_SOURCE_DIR "/../shared/cases/snapshots/windows-paths.pickle";
  if (!std::filesystem::exists(shared)) GTEST_SKIP() << shared << " is not there";
  const std::string file = "'" + shared.string() + "'";
  const Ran plain = run("whatif " + file + " --details");
  EXPECT_THAT(plain.out, HasSubstr("train.py:12 main\n"));
  EXPECT_THAT(plain.out, testing::Not(HasSubstr("expandable_segments")));
  EXPECT_THAT(run("whatif " + file + " --by stack").out,
              HasSubstr("blocks  allocated in\n20.0 MiB  100.0 %       1  train.py:12 main\n"));
  EXPECT_THAT(run("whatif " + file + " --picture p.gif").err, HasSubstr("must end in .svg or .png"));
  EXPECT_THAT(run("whatif " + file + " --picture p.svg").out, HasSubstr("wrote p.svg"));
  EXPECT_THAT(run("whatif " + file + " --alloc-conf expandable_segments:True").out,
              HasSubstr("expandable_segments does nothing on Windows"));
  const Json by_file = Json::parse(run("whatif " + file + " --by file --json -").out);
  EXPECT_EQ(by_file["peak"][0]["files"], Json::array({R"(C:\u\train.py)"}));
  const Json by_module = Json::parse(run("whatif " + file + " --by module --json -").out);
  EXPECT_EQ(by_module["peak"][0]["modules"], Json::array({"train"}));
  run("whatif " + file + " --folded one.folded --quiet");
  EXPECT_EQ(read_input_file(folder.file("one.folded")), "train.py:12 main;module.py:1357 convert 20971520\n");
  run("diff " + file + " " + file + " --by stack --folded two.folded --quiet");
  EXPECT_EQ(read_input_file(folder.file("two.folded")),
            "train.py:12 main;module.py:1357 convert 20971520 20971520\n");
  EXPECT_THAT(run("diff " + file + " " + file + " --by stack").out,
              HasSubstr("\ntrain.py:12 main           20.0 MiB  20.0 MiB"));
}

TEST_F(CliTest, DiffSaysWhatGrew) {
  const std::string recorded = "'" VRAMLAB_SOURCE_DIR "/tests/data/recorded/";
  const Ran ran = run("diff " + recorded + "lstm.pickle.gz' " + recorded + "bert.pickle.gz' --json -");
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Json device = Json::parse(ran.out)["devices"][0];
  std::int64_t total = device["rest"]["growth_bytes"];
  for (const Json& share : device["by_size_class"]) total += share["growth_bytes"].get<std::int64_t>();
  EXPECT_EQ(total, device["reserved"]["growth_bytes"]);
  write_scenario("small.json");
  run("compare small.json --json a.json --quiet");
  run("run small.json --policy rule --json b.json --quiet --first-iterations 20");
  EXPECT_THAT(run("diff a.json a.json").out, StartsWith("small: 0 of 3 policies differ"));
  EXPECT_THAT(run("diff a.json b.json").out, HasSubstr("(only in A)"));
  EXPECT_THAT(run("diff a.json " + recorded + "lstm.pickle.gz'").err, HasSubstr("are of two kinds"));
  EXPECT_THAT(run("diff small.json a.json").err,
              StartsWith("small.json: is a scenario; give a snapshot (.pickle), a result "));
  EXPECT_EQ(run("diff a.json").code, 2);
}

TEST_F(CliTest, ListsPoliciesAndCards) {
  EXPECT_THAT(run("policies").out, HasSubstr("dual-optimizer"));
  EXPECT_THAT(run("policies dual-optimizer").out, HasSubstr("target_vram_usage"));
  EXPECT_THAT(run("gpus").out, HasSubstr("h100-80gb                79.18 GiB         -"));
  EXPECT_EQ(Json::parse(run("gpus --json -").out)[0].contains("total_bytes"), true);
  EXPECT_EQ(Json::parse(run("schema").out)["title"], "A scenario of vramlab");
}

// K1-12: 26 tensors of 400 MiB fit in 10.16 GiB + 287.06 MiB, the 27th does not, and nothing idle is to
// blame.
TEST_F(CliTest, WhatIfSaysWhichRequestFailsAndHowMuchIsMissing) {
  std::ofstream script{folder.file("tensors.csv")};
  script << "op,id,bytes\n";
  for (int i = 0; i < 27; ++i) script << "alloc,t" << i << ",419430400\n";
  script.close();
  const Bytes usable = 26 * 400_MiB + 287_MiB;
  const Ran ran = run("whatif tensors.csv --alloc-conf '' --smallest --json - --capacity " +
                      std::to_string(usable + 552'402'944));
  EXPECT_EQ(ran.code, 0);
  const Json row = Json::parse(ran.out)["rows"][0];
  EXPECT_EQ(row["usable_bytes"], usable);
  EXPECT_EQ(row["fits"], false);
  EXPECT_EQ(row["ooms"], 1);
  EXPECT_EQ(row["peak_allocated_bytes"], 10'905'190'400);
  EXPECT_EQ(row["peak_reserved_bytes"], 10'905'190'400);
  EXPECT_EQ(row["first_oom"]["operation"], 27);
  EXPECT_EQ(row["first_oom"]["device_free_bytes"], 287_MiB);
  EXPECT_THAT(row["first_oom"]["message"].get<std::string>(), HasSubstr("Tried to allocate 400.00 MiB"));
  EXPECT_EQ(row["smallest_usable_bytes"], 27 * 400_MiB);
  EXPECT_EQ(row["smallest_without_retry_bytes"], 27 * 400_MiB);

  const std::string text = run("whatif tensors.csv --capacity 11GiB").out;
  EXPECT_THAT(text,
              StartsWith("Does not fit on a card of 11.0 GiB (context assumed) with any of the 5 settings "
                         "tried: default settings need the least, 10.5 GiB of 10.5 GiB usable"));
}

// The sums of every list account for every byte of the peak, and the answer does not depend on the threads.
TEST_F(CliTest, WhatIfAccountsForEveryByteAtThePeak) {
  const std::string file = "'" VRAMLAB_SOURCE_DIR "/tests/data/recorded/resnet.pickle.gz'";
  const Ran ran = run("whatif " + file + " --smallest -j 1 --json -");
  EXPECT_EQ(run("whatif " + file + " --smallest -j 3 --json -").out, ran.out);
  const Json json = Json::parse(ran.out);
  for (const char* list : {"peak", "peak_by_size_class", "peak_by_stream"}) {
    Bytes sum = 0;
    for (const Json& share : json[list]) sum += share["bytes"].get<Bytes>();
    EXPECT_EQ(sum, json["rows"][0]["peak_allocated_bytes"]) << list;
  }
  // Really run so: whatif/resnet.default and resnet.expand.
  EXPECT_EQ(json["rows"][0]["alloc_conf"], "");
  EXPECT_EQ(json["rows"][0]["peak_reserved_bytes"], 3'906'994'176);
  EXPECT_EQ(json["rows"][1]["alloc_conf"], "expandable_segments:True");
  EXPECT_EQ(json["rows"][1]["peak_reserved_bytes"], 3'139'436'544);
}

// What is exported is a recording like any other: verify reproduces it.
TEST_F(CliTest, WhatIfExportsARowThatVerifyReproduces) {
  const std::string file = "'" VRAMLAB_SOURCE_DIR "/tests/data/recorded/resnet.pickle.gz'";
  run("whatif " + file + " --alloc-conf expandable_segments:True --export row.pickle");
  const Json verified = Json::parse(run("verify row.pickle --json -").out)["files"][0];
  EXPECT_EQ(verified["addresses_checked"], 3174);
  EXPECT_EQ(verified["address_mismatches"], 0);
  EXPECT_EQ(verified["segment_events_matched"], verified["segment_events_recorded"]);
  EXPECT_THAT(run("whatif " + file + " --export row.pickle").err,
              HasSubstr("takes one program under one setting"));
}

TEST_F(CliTest, WhatIfWithSeveralFilesAnswersForTheRankThatNeedsMost) {
  const std::string folder_of_data = VRAMLAB_SOURCE_DIR "/tests/data/recorded/";
  const Json json = Json::parse(run("whatif '" + folder_of_data + "lstm.pickle.gz' '" + folder_of_data +
                                    "resnet.pickle.gz' --gpu rtx-3080-10gb --json -")
                                    .out);
  EXPECT_THAT(json["rows"][0]["file"].get<std::string>(), HasSubstr("resnet"));
  EXPECT_EQ(json["ranks"].size(), 2U);
}

TEST_F(CliTest, WhatIfSaysWhatIsWrongWithAQuestion) {
  std::ofstream{folder.file("one.csv")} << "op,id,bytes\nalloc,a,1MiB\n";
  EXPECT_THAT(run("whatif one.csv --alloc-conf expand_segments:True").err,
              StartsWith("--alloc-conf expand_segments:True: unrecognized key. Did you mean"));
  EXPECT_THAT(run("whatif one.csv --capacity 12gigs").err,
              StartsWith("--capacity: \"12gigs\" is not a size."));
  EXPECT_THAT(run("whatif one.csv --capacity 100MiB").err, HasSubstr("do not even hold the CUDA context"));
  EXPECT_THAT(run("whatif one.csv --capacity 4GiB --capacity 8GiB --limit 6GiB").err,
              StartsWith("a card of 4.0 GiB: a limit of 6.0 GiB is more than the 4.0 GiB of the card."));
  EXPECT_EQ(run("whatif one.txt").code, 2);
}

// Beside 1000 MiB, 9 samples of 810 MiB stay below 90 % of 10000 MiB; of these the search takes nine tenths.
TEST_F(CliTest, RunSaysWhichSearchGaveTheStart) {
  std::ofstream{folder.file("search.json")} << R"({"version": 1, "kind": "training", "name": "search",
      "device": {"total": "10000MiB", "context": 0},
      "workload": {"model": {"kind": "linear", "fixed": "1000MiB", "per_sample": "810MiB", "resident": "20MiB",
                             "parameters": {"batch": [2, 64]}, "step_time": {"floor_ms": 100}},
                   "iterations": 5, "start": {"batch": 3}},
      "policies": [{"use": "fixed", "label": "mine", "after_search": {"use": "binsearch"}}]})";
  const Ran ran = run("run search.json");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("mine began at batch 8, which its search (binsearch) found in "));
}

TEST_F(CliTest, FindBatchTakesADevice) {
  EXPECT_THAT(run("find-batch search.json --device cude").err, HasSubstr("Did you mean \"cuda\"?"));
  EXPECT_THAT(run("find-batch search.json --time-scale 0.5").err, HasSubstr("is for --device cuda"));
}

}  // namespace
}  // namespace vramlab
