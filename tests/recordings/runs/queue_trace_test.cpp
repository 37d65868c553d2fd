#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "policies/contract/policy_set.hpp"
#include "recordings/runs/run_trace.hpp"
#include "tests/recordings/runs/written_text.hpp"

namespace vramlab {
namespace {

using std::chrono::seconds;

// Two jobs of 6 GiB one after the other on a card of 10 GiB, 10 s each; the second waits.
struct Two {
  JobQueueSetup setup;
  JobQueueRun run;
};
Two two_jobs() {
  Two two;
  two.setup.cluster.pools = {{10_GiB}};
  two.setup.cluster.nodes = {{.pool = 0, .first = 0, .count = 1}};
  for (const char* name : {"a", "b, the second"}) {
    JobSpec job;
    job.name = name;
    job.demand.fixed = 6_GiB;
    job.phases = {{.duration = seconds{10}, .fixed_use = 9500_MiB}};
    two.setup.jobs.push_back(job);
  }
  two.setup.keep_moments = true;
  two.run =
      run_job_queue(two.setup, *builtin_policies()->admitters.make({"job-queue", "strict-fifo", {}, ""}));
  return two;
}

TEST(QueueTrace, MonitorHasTheNamesAndFiguresOfTheQueue) {
  const std::string text = text_of(write_monitor_csv, two_jobs().run);
  EXPECT_THAT(text, testing::StartsWith("time_s,total_memory,used_memory,free_memory,utilization,active_jobs,"
                                        "pending_jobs,total_allocated,pending_requirements,cards_over_90\n"));
  // One runs with 9,500 of 10,240 MiB (92.8 %), one waits for 6 GiB.
  EXPECT_THAT(text, testing::HasSubstr("\n0.0,10737418240,9961472000,775946240,0.927734375,1,1,6442450944,"
                                       "6442450944,1\n"));
  EXPECT_THAT(text,
              testing::HasSubstr("\n10.0,10737418240,9961472000,775946240,0.927734375,1,0,6442450944,0,1\n"));
  EXPECT_THAT(text, testing::EndsWith("\n20.0,10737418240,0,10737418240,0.0,0,0,0,0,0\n"));
}

TEST(QueueTrace, StaysSayWhoWasWhereWhen) {
  const Two two = two_jobs();
  EXPECT_EQ(text_of(write_stays_csv, two.setup.jobs, two.run),
            "name,cards,from_s,to_s,need,most_used,oom\n"
            "a,0,0.0,10.0,6442450944,9961472000,false\n"
            "\"b, the second\",0,10.0,20.0,6442450944,9961472000,false\n");
}

TEST(QueueTrace, CardsAreTheSameAsJsonAndAsCsv) {
  const JobQueueRun run = two_jobs().run;
  const std::string json = text_of(write_cards_jsonl, run);
  const std::string csv = text_of(write_cards_csv, run);
  EXPECT_EQ(std::count(json.begin(), json.end(), '\n'), std::ssize(run.moments));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), std::ssize(run.moments) + 1);
  const auto last = nlohmann::json::parse(json.substr(json.rfind('\n', json.size() - 2) + 1));
  EXPECT_EQ(last, nlohmann::json::parse(R"({"time_s": 20.0, "card": 0, "used": 0, "foreign": 0, "promised": 0,
                                            "jobs": 0, "alert": false, "status": "AVAILABLE"})"));
}

TEST(QueueTrace, PerfettoHasASliceAStay) {
  const Two two = two_jobs();
  const auto file = nlohmann::json::parse(text_of(write_queue_perfetto, "two", two.setup.jobs, two.run));
  std::vector<std::string> names;
  for (const auto& event : file["traceEvents"]) {
    if (event["ph"] != "X") continue;
    names.push_back(event["name"]);
    EXPECT_EQ(event["dur"], 10e6);
    EXPECT_EQ(event["args"]["most_used"], 9500_MiB);
    EXPECT_EQ(event["tid"], 1);  // they do not overlap
  }
  EXPECT_THAT(names, testing::ElementsAre("a", "b, the second"));
}

}  // namespace
}  // namespace vramlab
