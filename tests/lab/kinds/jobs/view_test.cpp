// What is shown of a run of the job queue: the page of --report, what became of each job, and what the
// environment set.
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/jobs/spec.hpp"

namespace vramlab {
namespace {

// One after the other on one card, all of one length: none is longer than the others.
TEST(ReportJobs, OfEqualStaysTheFirstFourThousandAreDrawn) {
  JobsScenario scenario = read_jobs(parse_document(
      R"({"version": 1, "kind": "jobs", "name": "long", "cards": [{"total": "10GiB"}],
          "jobs": [{"need": "6GiB", "duration_s": 0.01, "count": 4100}], "policies": [{"use": "job-queue"}]})",
      "long.json"));
  scenario.setup.keep_moments = true;
  const auto results = compare_queues(scenario);
  ASSERT_EQ(results[0].run.stays.size(), 4100u);
  const Json drawn = jobs_section(scenario, results, {})["policies"][0];
  EXPECT_EQ(drawn["omitted"], 100);
  ASSERT_EQ(drawn["stays"].size(), 4000u);
  EXPECT_EQ(drawn["stays"][3999][2], 39.99);  // its begin in seconds
}

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// One job that runs, one that waits for it, one that never fits, all on a card of 24 GiB.
JobsScenario three_jobs(const std::string& policies) {
  return read_jobs(parse_document(
      R"({"version": 1, "kind": "jobs", "name": "three", "cards": [{"total": "24GiB"}], "jobs": [
          {"name": "a", "need": "20GiB", "duration_s": 600}, {"name": "b, waits", "need": "10GiB", "duration_s": 60},
          {"name": "c", "need": "30GiB", "duration_s": 60}], "policies": [)" +
          policies + "]}",
      "three.json"));
}

TEST(JobFates, SayWhatBecameOfEachJobAndWhy) {
  const JobsScenario scenario = three_jobs(R"({"use": "job-queue", "wait_timeout_s": 300})");
  const auto results = compare_queues(scenario);
  const Json jobs = jobs_json(scenario, results)["policies"][0]["jobs"];
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].dump(),
            R"({"name":"a","state":"done","cards":[0],"submitted_s":0.0,"started_s":0.0,"ended_s":600.0,)"
            R"("batch":1,"accumulation":1,"kills":0,"reason":""})");
  EXPECT_EQ(jobs[1]["state"], "timed_out");
  EXPECT_EQ(jobs[1]["ended_s"], 300);
  EXPECT_TRUE(jobs[1]["started_s"].is_null());
  EXPECT_EQ(
      jobs[1]["reason"],
      "no memory within 300 s: needs 10.0 GiB; the freest card, 0, has 4.0 GiB of 24.0 GiB to give less "
      "a margin of 1000.0 MiB.");
  EXPECT_EQ(jobs[2]["state"], "refused");
  EXPECT_EQ(jobs[2]["reason"], "Needs 30.0 GiB; the largest card offers 24.0 GiB: it can never fit.");
  EXPECT_THAT(
      fates_csv(scenario.setup, results[0].run),
      testing::StartsWith("name,state,cards,submitted_s,started_s,ended_s,batch,accumulation,kills,reason\n"
                          "a,done,0,0.0,0.0,600.0,1,1,0,\n"
                          "\"b, waits\",timed_out,,0.0,,300.0,,,0,"));
}

TEST(JobFates, OfALongListTheTableShowsThoseThatDidNotEndWell) {
  const auto table_of = [](int good, int bad) {
    const JobsScenario scenario = read_jobs(parse_document(
        R"({"version": 1, "kind": "jobs", "name": "long", "cards": [{"total": "24GiB"}], "jobs": [
            {"name": "good", "need": "1GiB", "duration_s": 1, "count": )" +
            std::to_string(good) + R"(}, {"name": "bad", "need": "30GiB", "duration_s": 1, "count": )" +
            std::to_string(bad) + R"(}], "policies": [{"use": "job-queue"}]})",
        "long.json"));
    const auto table = fates_table(scenario.setup, compare_queues(scenario));
    return table ? table->format(TableFormat::csv) : std::string{};
  };
  EXPECT_THAT(table_of(2, 2), AllOf(HasSubstr("good 1,done"), HasSubstr("bad 2,refused")));
  EXPECT_THAT(table_of(30, 8), AllOf(Not(HasSubstr("good")), HasSubstr("bad 5,refused"),
                                     Not(HasSubstr("bad 6,")), HasSubstr("3 more,,,,,,3 refused")));
  const JobsScenario fine = three_jobs(R"({"use": "job-queue"})");
  EXPECT_EQ(fates_table(fine.setup, {}), std::nullopt);
  EXPECT_THAT(
      full_fates_table(fine.setup, compare_queues(fine)).format(TableFormat::csv),
      HasSubstr("policy,name,state,cards,submitted_s,started_s,ended_s,batch,accumulation,kills,reason\n"
                "backfill,a,done,0,0.0,0.0,600.0,1,1,0,\n"));
}

TEST(JobFates, AreAboutWhatTheMetricIsAbout) {
  const JobsScenario scenario = three_jobs(R"({"use": "job-queue", "wait_timeout_s": 300})");
  const auto results = compare_queues(scenario);
  const auto about = [&](const char* metric) { return jobs_about(metric, scenario.setup, results[0].run); };
  EXPECT_THAT(about("completed"), testing::ElementsAre(HasSubstr("c: "), HasSubstr("b, waits: ")));
  EXPECT_THAT(about("refused"), testing::ElementsAre(HasSubstr("c: ")));
  EXPECT_THAT(about("timeouts"), testing::ElementsAre(HasSubstr("needs 10.0 GiB")));
  EXPECT_THAT(about("mean_completion_s"), testing::ElementsAre(HasSubstr("a: ")));
  EXPECT_THAT(about("p99_wait_s"), testing::ElementsAre(HasSubstr("waited 300.0 s"), HasSubstr("a: ")));
  EXPECT_TRUE(about("oom_kills").empty());
}

/// A variable of the environment while a test lasts.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(JobEnvironment, SetsWhatAnEntryOfTheFaithfulProfileDoesNotSayItself) {
  const Variable timeout{"JOB_TIMEOUT", "200"};
  const Variable margin{"SAFETY_MARGIN_MB", "5000"};
  const Variable gpu{"USE_GPU", "True"};
  const JobsScenario scenario =
      three_jobs(R"({"use": "job-queue", "profile": "faithful", "safety_margin_mb": 0},
                    {"use": "job-queue", "profile": "backfill"})");
  EXPECT_THAT(scenario.notes,
              testing::ElementsAre("faithful: USE_GPU=True of the environment sets use_gpu.",
                                   "faithful: JOB_TIMEOUT=200 of the environment sets job_timeout_s."));
  EXPECT_EQ(scenario.policies[0].choice.options.find("safety_margin_mb")->value,
            OptionValue{std::int64_t{0}});
  EXPECT_EQ(compare_queues(scenario)[0].run.jobs[0].end, std::chrono::seconds{200});
  EXPECT_TRUE(scenario.policies[1].choice.options.empty());
}

TEST(JobEnvironment, RefusesWhatTheOptionRefuses) {
  const Variable jobs{"MAX_CONCURRENT_JOBS", "two"};
  try {
    three_jobs(R"({"use": "job-queue", "profile": "faithful"})");
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("MAX_CONCURRENT_JOBS"), HasSubstr("two")));
  }
  EXPECT_TRUE(three_jobs(R"({"use": "job-queue"})").notes.empty());
}

/// Scenarios of others, with what they expect; skipped where they are absent.
class SharedJobs : public testing::TestWithParam<const char*> {};

TEST_P(SharedJobs, HoldWhatTheyExpect) {
  const std::filesystem::path file =
      std::filesystem::path{VRAMLAB_SOURCE_DIR} / "../shared/cases/jobs" / GetParam();
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  const SeededExperiments seeds = read_seeds(read_document(file));
  for (const CheckedExpectation& one : check_expectations(seeds)) {
    EXPECT_TRUE(one.ok) << one.policy << " " << one.metric << " " << one.value;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SharedJobs, testing::Values("j13-whole-card.json", "wait-first.json"));

// Of a job with a model, a variant's need is measured as the job's own: 527 MiB of context, 1,000 fixed, and
// 500 or 300 for each of 10 samples.
TEST(JobVariants, AreMeasuredWhereTheyRunAModel) {
  const auto model = [](const char* per_sample) {
    return std::string{R"({"kind": "linear", "fixed": "1000MiB", "resident": "200MiB", "per_sample": ")"} +
           per_sample + R"(", "parameters": {"batch": [1, 64]}, "step_time": {"floor_ms": 100}})";
  };
  const JobsScenario scenario = read_jobs(parse_document(
      R"({"version": 1, "kind": "jobs", "name": "ways", "fidelity": "steps", "cards": [{"total": "8000MiB"}],
          "jobs": [{"need": "2000MiB", "duration_s": 60},
                   {"model": )" +
          model("500MiB") + R"(, "batch": 10, "steps": 100, "variants": [{"name": "half", "model": )" +
          model("300MiB") + R"(}]}],
          "policies": [{"use": "job-queue", "degrade": "degrade-first", "safety_margin_mb": 0}]})",
      "ways.json"));
  const JobSpec& job = scenario.setup.jobs[1];
  EXPECT_EQ(job.demand.need(10, 0), 6527_MiB);
  EXPECT_EQ(job.demand.as_variant(1).need(10, 0), 4527_MiB);
  const JobRecord record = compare_queues(scenario)[0].run.jobs[1];
  EXPECT_EQ(record.split, (BatchSplit{10, 1, 1}));
  EXPECT_EQ(record.outcome, JobOutcome::completed);
}

}  // namespace
}  // namespace vramlab
