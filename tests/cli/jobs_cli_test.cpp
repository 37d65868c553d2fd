// `compare` and `check` on jobs, as a user runs them.
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <sys/wait.h>

#include "lab/json.hpp"
#include "recordings/input_file.hpp"
#include "report/table.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

class JobsCliTest : public testing::Test {
 protected:
  ScratchFolder folder;

  // Exit code, and what was printed on both streams.
  std::pair<int, std::string> run(const std::string& arguments) const {
    const std::string command =
        "cd '" + folder.path().string() + "' && '" VRAMLAB_PROGRAM "' " + arguments + " 2>&1";
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string out;
    std::array<char, 4096> buffer{};
    while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
      out.append(buffer.data(), n);
    return {WEXITSTATUS(::pclose(pipe)), out};
  }
  std::string shipped(const std::string& name) const { return VRAMLAB_SOURCE_DIR "/scenarios/" + name; }

  // Two jobs of 6 GiB on a card of 10 GiB, and `more` keys.
  void write_scenario(const std::string& name, const std::string& jobs, const std::string& more = "") const {
    std::ofstream{folder.file(name)}
        << R"({"version": 1, "kind": "jobs", "name": "two", "cards": [{"total": "10GiB"}],)" << more << jobs
        << R"(, "policies": [{"use": "job-queue", "profile": "strict-fifo"}],
      "expect": [{"policy": "strict-fifo", "metric": "makespan_s", "equals": 20}]})";
  }
};

constexpr const char* kTwoJobs = R"("jobs": [{"need": "6GiB", "duration_s": 10, "count": 2}])";

TEST_F(JobsCliTest, ComparePrintsItsTablesWithinAHundredColumns) {
  const auto [code, out] = run("compare " + shipped("queue-mixed-day.json") + " --json result.json");
  ASSERT_EQ(code, 0) << out;
  EXPECT_THAT(out, testing::StartsWith("Best: "));
  std::istringstream lines{out};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Best")) continue;
    EXPECT_LE(display_width(line), 100u) << line;
  }
  const Json result = read_json_file(folder.file("result.json"));
  EXPECT_EQ(result["fidelity"], "declared");
  EXPECT_EQ(result["policies"].size(), 8u);
  EXPECT_EQ(result["policies"][4]["metrics"]["completed"], 260);
}

TEST_F(JobsCliTest, WritesTheTimeLineAndThePicture) {
  write_scenario("two.json", kTwoJobs);
  const auto [code, out] = run("compare two.json --trace-dir t --picture p.svg --json r.json");
  ASSERT_EQ(code, 0) << out;
  for (const char* ending : {".jsonl", ".csv", ".jobs.csv", ".fates.csv", ".monitor.csv", ".perfetto.json"}) {
    EXPECT_THAT(out, HasSubstr(std::string{"wrote t/strict-fifo"} + ending + "\n"));
    EXPECT_FALSE(read_input_file(folder.file(std::string{"t/strict-fifo"} + ending)).empty()) << ending;
  }
  EXPECT_THAT(read_input_file(folder.file("p.svg")), HasSubstr("two: 2 jobs on 1 card"));
  EXPECT_EQ(read_json_file(folder.file("r.json"))["policies"][0]["trace_files"].size(), 6u);
}

TEST_F(JobsCliTest, CheckHoldsTheExpectations) {
  write_scenario("two.json", kTwoJobs);
  EXPECT_EQ(run("check two.json").first, 0);
  write_scenario("three.json", R"("jobs": [{"need": "6GiB", "duration_s": 10, "count": 3}])");
  EXPECT_EQ(run("check three.json").first, 1);
}

TEST_F(JobsCliTest, CheckShowsTheJobsThatAnExpectationIsAbout) {
  write_scenario(
      "big.json",
      R"("jobs": [{"need": "6GiB", "duration_s": 10}, {"name": "big", "need": "20GiB", "duration_s": 10}])");
  Json json = read_json_file(folder.file("big.json"));
  json["expect"] = {{{"policy", "strict-fifo"}, {"metric", "refused"}, {"equals", 0}}};
  std::ofstream{folder.file("big.json")} << json.dump();
  const auto [code, out] = run("check big.json");
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out,
              HasSubstr("big: arrived at 0.0 s, waited 0.0 s, refused at 0.0 s, 0 OOMs (Needs 20.0 GiB; the "
                        "largest card offers 10.0 GiB: it can never fit.)"));
  EXPECT_THAT(out, testing::Not(HasSubstr("job 0: ")));
}

// Only a training scenario has an oracle; elsewhere it is a label as good as any other.
TEST_F(JobsCliTest, CheckRunsAPolicyThatIsLabelledOracle) {
  write_scenario("two.json", kTwoJobs);
  Json json = read_json_file(folder.file("two.json"));
  json["policies"].push_back({{"use", "job-queue"}, {"profile", "no-admission"}, {"label", "oracle"}});
  json["expect"].push_back({{"policy", "oracle"}, {"metric", "jobs"}, {"equals", 3}});
  std::ofstream{folder.file("two.json")} << json.dump();
  const auto [code, out] = run("check two.json");
  EXPECT_EQ(code, 1);
  EXPECT_THAT(out, HasSubstr("FAIL two.json: oracle jobs 2 (= 3)\n"));
  json["policies"][1]["label"] = "";
  std::ofstream{folder.file("two.json")} << json.dump();
  EXPECT_THAT(run("check two.json").second, HasSubstr("/policies/1: \"label\" is empty."));
}

// Two of three never find room beside the stranger: they have waited until nothing more happened.
TEST_F(JobsCliTest, WhoWaitsForEverHasWaitedUntilTheEnd) {
  std::ofstream{folder.file("wait.json")}
      << R"({"version": 1, "kind": "jobs", "name": "wait", "cards": [{"total": "24GiB"}],
      "strangers": [{"card": 0, "bytes": "18GiB"}],
      "jobs": [{"need": "2GiB", "duration_s": 60}, {"need": "12GiB", "count": 2, "duration_s": 60}],
      "policies": [{"use": "job-queue", "profile": "best-effort", "safety_margin_mb": 0, "wait_timeout_s": 0}]})";
  const auto [code, out] = run("compare wait.json --json r.json");
  ASSERT_EQ(code, 0) << out;
  const Json metrics = read_json_file(folder.file("r.json"))["policies"][0]["metrics"];
  EXPECT_EQ(metrics["completed"], 1);
  EXPECT_EQ(metrics["p99_wait_s"], metrics["makespan_s"]);
  EXPECT_EQ(metrics["mean_wait_s"].get<double>(), metrics["makespan_s"].get<double>() * 2 / 3);
}

// Without a completed job there is no mean time; 0 would be the best of all.
TEST_F(JobsCliTest, TimesOfNoCompletedJobAreNone) {
  write_scenario("none.json", R"("jobs": [{"need": "20GiB", "duration_s": 10}])");
  const auto [code, out] = run("compare none.json --json r.json");
  ASSERT_EQ(code, 0) << out;
  const Json metrics = read_json_file(folder.file("r.json"))["policies"][0]["metrics"];
  EXPECT_EQ(metrics["completed"], 0);
  EXPECT_TRUE(metrics["mean_completion_s"].is_null());
  EXPECT_TRUE(metrics["p99_wait_s"].is_null());
  EXPECT_TRUE(metrics["fairness"].is_null());
  EXPECT_THAT(out, HasSubstr("  - "));
  EXPECT_THAT(out, testing::Not(HasSubstr("nan")));
}

TEST_F(JobsCliTest, SeedsGiveMeansAndSpreads) {
  const auto [code, out] =
      run("compare " + shipped("queue-wrong-estimates.json") + " --seeds 3 --json s.json");
  ASSERT_EQ(code, 0) << out;
  EXPECT_THAT(out, HasSubstr("seeds 3 to 5"));
  EXPECT_THAT(out, HasSubstr("\n  ±"));
  const Json result = read_json_file(folder.file("s.json"));
  EXPECT_EQ(result["seeds"], 3);
  EXPECT_GT(result["policies"][0]["spread"]["makespan_s"], 0);
  EXPECT_EQ(result["policies"][0]["spread"]["jobs"], 0);
  double sum = 0;
  for (const char* seed : {"3", "4", "5"}) {
    std::string text = read_input_file(shipped("queue-wrong-estimates.json"));
    text.replace(text.find("\"seed\": 3"), 9, std::string{"\"seed\": "} + seed);
    std::ofstream{folder.file("one.json")} << text;
    ASSERT_EQ(run("compare one.json --json one-result.json").first, 0);
    sum +=
        read_json_file(folder.file("one-result.json"))["policies"][0]["metrics"]["makespan_s"].get<double>();
  }
  EXPECT_NEAR(result["policies"][0]["metrics"]["makespan_s"].get<double>(), sum / 3, 1e-6);
}

TEST_F(JobsCliTest, SeedsAreRefusedWhereNothingIsDrawn) {
  write_scenario("two.json", kTwoJobs);
  const auto [code, out] = run("compare two.json --seeds 3");
  EXPECT_EQ(code, 2);
  EXPECT_THAT(out, HasSubstr("every seed gives the same run"));
  EXPECT_EQ(run("compare two.json --seeds 0").first, 2);
}

TEST_F(JobsCliTest, ReadsAJsonListOfJobs) {
  std::ofstream{folder.file("list.json")} << "{" << kTwoJobs << "}";
  write_scenario("two.json", R"("trace": {"jobs": "list.json"})");
  EXPECT_EQ(run("check two.json").first, 0);
  std::ofstream{folder.file("list.json")} << R"({"jobs": [{"need": "6GiB"}, {"duration_s": 5, "nead": 1}]})";
  const auto [code, out] = run("check two.json");
  EXPECT_EQ(code, 2);
  EXPECT_THAT(out, HasSubstr("list.json: /jobs/1/nead"));
  std::ofstream{folder.file("list.json")} << R"({"jobs": [{"need": "6GiB"}]})";
  EXPECT_THAT(run("check two.json").second,
              HasSubstr("list.json: /jobs/0: give either \"duration_s\" or \"phases\""));
}

TEST_F(JobsCliTest, AListOfJobsIsReadByWhatItHoldsWhateverItsName) {
  const std::string table = "arrival_s,duration_s,need\n0,10,6GiB\n0,10,6GiB\n";
  for (const std::string name : {"list.json.zst", "list.csv", "list.json", "list"}) {
    write_scenario("two.json", R"("trace": {"jobs": ")" + name + "\"}");
    std::ofstream{folder.file(name)} << "{" << kTwoJobs << "}";
    EXPECT_EQ(run("check two.json").first, 0) << name;
    std::ofstream{folder.file(name)} << table;
    EXPECT_EQ(run("check two.json").first, 0) << name;
    std::ofstream{folder.file(name)} << R"({"kind": "linear"})";
    EXPECT_THAT(
        run("check two.json").second,
        HasSubstr(name +
                  ": is a workload model (.json); give a list of jobs (.csv) or a list of jobs (.json)."));
  }
}

TEST_F(JobsCliTest, TwoJobsOfOneNameAreRefused) {
  std::ofstream{folder.file("list.csv")} << "name,arrival_s,duration_s,need\na 2,0,10,6GiB\n";
  const std::string list = R"("trace": {"jobs": "list.csv"}, )";
  for (const auto& [jobs, message] :
       {std::pair{R"("jobs": [{"name": "b", "need": "6GiB", "duration_s": 5},
                                 {"name": "b", "need": "6GiB", "duration_s": 5}])",
                  "/jobs/1/name: is that of an earlier job (\"b\")"},
        {R"("jobs": [{"name": "a", "need": "6GiB", "duration_s": 5, "count": 2}])",
         "/jobs/0/name: is that of an earlier job (\"a 2\")"}}) {
    write_scenario("two.json", list + jobs);
    const auto [code, out] = run("check two.json");
    EXPECT_EQ(code, 2) << jobs;
    EXPECT_THAT(out, HasSubstr(message));
  }
}

// 2^63 ns are 9.22e9 s.
TEST_F(JobsCliTest, JobsThatOutlastTheClockAreRefused) {
  for (const auto& [jobs, message] :
       {std::pair{R"("jobs": [{"need": "6GiB", "duration_s": 10, "count": 1000, "every_s": 1e8}])",
                  "/jobs/0/every_s: the last of these jobs comes later than 31 years."},
        {R"("jobs": [{"need": "6GiB", "phases": [{"duration_s": 1e9}, {"duration_s": 1}]}])",
         "/jobs/0/phases/1: takes longer than 1000000000 seconds"},
        {R"("jobs": [{"need": "6GiB", "duration_s": 1e9, "count": 10}])",
         "the run would last longer than 250 years"}}) {
    write_scenario("long.json", jobs);
    const auto [code, out] = run("check long.json");
    EXPECT_EQ(code, 2) << jobs;
    EXPECT_THAT(out, HasSubstr(message));
  }
}

// Two jobs of 10 s, one after the other.
TEST_F(JobsCliTest, WhatNeverComesFailsACheck) {
  const auto check = [&](const std::string& more, const std::string& job) {
    write_scenario("two.json", R"("jobs": [{"need": "6GiB", "duration_s": 10, "count": 2)" + job + "}]",
                   more);
    return run("check two.json");
  };
  EXPECT_EQ(check(R"("strangers": [{"card": 0, "from_s": 20, "bytes": "1GiB"}],)", "").first, 0);
  const auto [late, late_said] = check(R"("strangers": [{"card": 0, "from_s": 21, "bytes": "1GiB"}],)", "");
  EXPECT_EQ(late, 1);
  EXPECT_THAT(late_said, HasSubstr("never comes: it comes at 21 s, and the last job leaves at 20 s"));
  const auto [alive, alive_said] = check("", R"(, "crash_after_s": 11)");
  EXPECT_EQ(alive, 1);
  EXPECT_THAT(alive_said, HasSubstr("its owner does not die: it never ran for 11 s"));
}

TEST_F(JobsCliTest, AJobsModelIsCheckedAndMeasured) {
  const std::string linear =
      R"({"kind": "linear", "fixed": "1000MiB", "per_sample": "500MiB", "resident": "200MiB",
          "parameters": {"batch": [1, 64]}, "step_time": {"floor_ms": 100}})";
  const std::string steps = R"("fidelity": "steps",)";
  // 527 + 1,000 + 10 · 500 MiB twice is more than the card: one after the other, 100 steps of 100 ms each.
  const std::string good = R"("jobs": [{"model": )" + linear + R"(, "batch": 10, "steps": 100, "count": 2}])";
  write_scenario("good.json", good, steps);
  const auto [code, out] = run("compare good.json --json r.json");
  ASSERT_EQ(code, 0) << out;
  const Json metrics = read_json_file(folder.file("r.json"))["policies"][0]["metrics"];
  EXPECT_NEAR(metrics["makespan_s"].get<double>(), 20, 0.1);
  EXPECT_EQ(metrics["most_promised_bytes"].get<double>(), 6527 * 1048576.0);
  for (const auto& [keys, message] :
       {std::pair{R"("steps": 1, "duration_s": 5)", "time and use come from the model"},
        {R"("duration_s": 5)", "give either \"steps\" or \"phases\""},
        {R"("steps": 1, "batch": 65)", "batch 65 is out of bounds; the model allows 1 to 64"},
        {R"("steps": 1, "at": {"seq": 3})", "/jobs/0/at/seq: the model has no such parameter"}}) {
    write_scenario("bad.json", R"("jobs": [{"model": )" + linear + "," + keys + "}]", steps);
    const auto [bad_code, bad_out] = run("check bad.json");
    EXPECT_EQ(bad_code, 2) << keys;
    EXPECT_THAT(bad_out, HasSubstr(message));
  }
}

}  // namespace
}  // namespace vramlab
