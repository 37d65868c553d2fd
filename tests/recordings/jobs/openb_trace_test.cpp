// The openb lists as they were published; skipped where they are absent. Counts: data README and `cut | sort
// | uniq -c` over the columns.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "policies/contract/policy_set.hpp"
#include "recordings/jobs/job_lists.hpp"
#include "sim/runs/job_queue_loop.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

const fs::path kOpenbJobs = fs::path{VRAMLAB_SOURCE_DIR} / "../shared/data/jobs";

class OpenbTraceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kOpenbJobs / "openb_node_list_gpu_node.csv"))
      GTEST_SKIP() << "no public job traces in " << kOpenbJobs;
  }
  static OpenbTrace read(const std::string& list) {
    return read_openb(kOpenbJobs / ("openb_pod_list_" + list + ".csv"),
                      kOpenbJobs / "openb_node_list_gpu_node.csv");
  }
};

TEST_F(OpenbTraceTest, HasThePublishedNumbersOfPodsAndCards) {
  const OpenbTrace trace = read("default");
  EXPECT_EQ(trace.pods, 8152u);
  EXPECT_EQ(trace.without_gpu, 1088u);
  EXPECT_EQ(trace.jobs.size(), 7064u);
  EXPECT_EQ(trace.cluster.nodes.size(), 1213u);
  std::uint32_t cards = 0;
  for (const CardNode& node : trace.cluster.nodes) cards += node.count;
  EXPECT_EQ(cards, 6212u);
  EXPECT_THAT(trace.assumed, testing::UnorderedElementsAre("G2", "G3"));
}

TEST_F(OpenbTraceTest, APodsFigures) {
  const OpenbTrace trace = read("default");
  const JobSpec& pod = trace.jobs[1];  // openb-pod-0001,…,1,460,,LS,Running,427061,12902960,427061
  EXPECT_EQ(pod.name, "openb-pod-0001");
  EXPECT_EQ(pod.arrival, std::chrono::seconds{427061});
  EXPECT_EQ(pod.duration(), std::chrono::seconds{12902960 - 427061});
  EXPECT_EQ(pod.demand.share_milli, 460);
  EXPECT_EQ(pod.demand.need(1, 16_GiB), 16_GiB / 1000 * 460 + 16_GiB % 1000 * 460 / 1000);
  // openb-pod-0061, pending: 10001278 created, 10001403 deleted, never scheduled
  const auto pending = std::find_if(trace.jobs.begin(), trace.jobs.end(),
                                    [](const JobSpec& job) { return job.name == "openb-pod-0061"; });
  ASSERT_NE(pending, trace.jobs.end());
  EXPECT_EQ(pending->duration(), std::chrono::seconds{125});
}

TEST_F(OpenbTraceTest, SpecsRestrictTheCards) {
  const OpenbTrace trace = read("gpuspec33");
  const auto restricted = std::count_if(trace.jobs.begin(), trace.jobs.end(),
                                        [](const JobSpec& job) { return job.demand.pools != kAnyPool; });
  EXPECT_EQ(restricted, 8152 - 5764);
}

// Every pod with a GPU runs once, whatever the order, and no reserving profile promises a card twice.
TEST_F(OpenbTraceTest, EveryPodRunsUnderEveryReservingProfile) {
  for (const char* list : {"default", "gpushare40", "gpuspec33"}) {
    OpenbTrace trace = read(list);
    const JobQueueSetup setup{.cluster = std::move(trace.cluster), .jobs = std::move(trace.jobs)};
    for (const char* profile : {"strict-fifo", "best-effort", "backfill"}) {
      const auto policy = builtin_policies()->admitters.make(
          {"job-queue",
           profile,
           {{"safety_margin_mb", std::int64_t{0}, {}}, {"wait_timeout_s", 0.0, {}}},
           ""});
      const JobQueueRun run = run_job_queue(setup, *policy);
      EXPECT_EQ(run.overcommits, 0);
      for (const JobRecord& job : run.jobs) {
        ASSERT_EQ(job.outcome, JobOutcome::completed) << job.reason;
        ASSERT_EQ(job.starts, 1);
      }
    }
  }
}

// The queue as it comes: nobody is refused for a margin, and nobody gives up waiting.
TEST_F(OpenbTraceTest, EveryPodRunsUnderTheDefaults) {
  OpenbTrace trace = read("default");
  const JobQueueSetup setup{.cluster = std::move(trace.cluster), .jobs = std::move(trace.jobs)};
  const JobQueueRun run =
      run_job_queue(setup, *builtin_policies()->admitters.make({"job-queue", "", {}, ""}));
  EXPECT_EQ(run.jobs.size(), 7064u);
  for (const JobRecord& job : run.jobs) ASSERT_EQ(job.outcome, JobOutcome::completed) << job.reason;
}

TEST(JobList, ReadsOurCsvAndSaysWhereItIsWrong) {
  const fs::path file = fs::path{testing::TempDir()} / "jobs.csv";
  std::ofstream{file} << "name,arrival_s,duration_s,need,use\na,1.5,10,12GiB,\nb,2,20,512MiB,1GiB\n";
  const auto read = [&] {
    InputFile in{file};
    return read_job_list(in);
  };
  const auto jobs = read();
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].arrival, std::chrono::milliseconds{1500});
  EXPECT_EQ(jobs[0].demand.fixed, 12_GiB);
  EXPECT_EQ(jobs[0].phases[0].fixed_use, std::nullopt);
  EXPECT_EQ(jobs[1].phases[0].fixed_use, 1_GiB);
  for (const auto& [text, message] :
       {std::pair{"arrival_s,duration_s,need\n1,0,1GiB\n", ":2: duration_s \"0\" must be above 0"},
        {"arrival_s,duration_s,need\n1,5,1 gig\n", ":2: need \"1 gig\" is not a size"},
        {"arrival_s,need\n1,1GiB\n", ":1: has no column \"duration_s\""},
        {"arrival_s,duration_s,need\n-1,5,1GiB\n", "is not a number of at least 0"},
        {"arrival_s,duration_s,need\n", ": holds no jobs."},
        {"arrival_s,duration_s,need\n1,5\n", ":2: has 2 cells where the header has 3"},
        {"arrival_s,duration_s,need,gpus\n1,5,1GiB,2\n", ":1: unknown column \"gpus\". Known: "},
        {"arrival_s,duration_s,need,need\n1,5,1GiB,2\n", ":1: has the column \"need\" twice"},
        {"arrival_s,duration_s,need,cards\n1,5,1GiB,1.5\n", "cards \"1.5\" is not a whole number from 1"},
        {"arrival_s,duration_s,need\n0,5,1GiB\n1700000000000,5,1GiB\n",
         ":3: arrival_s \"1700000000000\" is out of range; allowed is 0 to 1000000000 seconds (31 years)"},
        {"arrival_s,duration_s,need\n1,1e15,1GiB\n", ":2: duration_s \"1e15\" is out of range"},
        {"arrival_s,duration_s,need\n1,5,2TiB\n",
         ":2: need \"2TiB\" is out of range; allowed is up to 1024.0"},
        {"name,arrival_s,duration_s,need\na,0,5,1GiB\nb,0,5,1GiB\na,0,5,1GiB\n",
         ":4: name \"a\" is that of an earlier job (\"a\")"},
        {"name,arrival_s,duration_s,need\njob 1,0,5,1GiB\n,0,5,1GiB\n",  // what a job without one is called
         ":3: name \"\" is that of an earlier job (\"job 1\")"},
        {"arrival_s,duration_s,need\n0,\"100\"7,1GiB\n", ":2: column 8: quotes around a part of a cell."},
        {"arrival_s,duration_s,need\r0,5,1GiB\r", ":1: column 26: a carriage return without a line feed."}}) {
    std::ofstream{file} << text;
    try {
      read();
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
    }
  }
  fs::remove(file);
}

TEST(JobList, ReportsEveryBadLine) {
  const fs::path file = fs::path{testing::TempDir()} / "bad-jobs.csv";
  const auto problems_of = [&](const std::string& text) {
    std::ofstream{file} << text;
    try {
      InputFile in{file};
      read_job_list(in);
    } catch (const InputError& error) {
      return error.problems();
    }
    return std::vector<Problem>{};
  };
  auto problems = problems_of("arrival_s,duration_s,need\n1,0,1GiB\n1,5,1GiB\nx,5,1GiB\n1,5,big\n");
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_THAT(problems[0].where, testing::EndsWith(":2"));
  EXPECT_THAT(problems[1].where, testing::EndsWith(":4"));
  EXPECT_THAT(problems[2].where, testing::EndsWith(":5"));
  EXPECT_EQ(problems_of("arrival_s,duration_s,need\n1,5\n1,5,1GiB\n1\n").size(), 2u);
  std::string long_list = "arrival_s,duration_s,need\n";
  for (int i = 0; i < 30; ++i) long_list += "x,5,1GiB\n";
  problems = problems_of(long_list);
  ASSERT_EQ(problems.size(), 21u);
  EXPECT_EQ(problems.back().what, "has 10 more problems like these.");
  fs::remove(file);
}

}  // namespace
}  // namespace vramlab
