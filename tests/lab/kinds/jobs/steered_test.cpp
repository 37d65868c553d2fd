// Jobs with a tuner as a scenario has them: what is refused, what is shown, and that they decide as
// trainings.
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/training/run.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two jobs of 1 GiB + 0.5 GiB a sample on a card of 8 GiB; `bent` replaces a place of it.
std::string two_jobs(const std::string& from = {}, const std::string& to = {}) {
  std::string text = R"({"version": 1, "kind": "jobs", "name": "two", "fidelity": "steps",
    "cards": [{"total": "8GiB", "context": "512MiB"}],
    "jobs": [{"name": "a, b", "count": 1, "need": "3GiB", "batch": 2, "steps": 100,
      "model": {"kind": "linear", "fixed": "1GiB", "per_sample": "512MiB", "resident": "512MiB",
                "parameters": {"batch": [1, 64]}, "step_time": {"floor_ms": 100}},
      "tuner": {"use": "threshold-step", "step": 2, "adjustment_frequency": 5, "bounds": {"batch": [2, 40]}}}],
    "policies": [{"use": "job-queue", "profile": "best-effort", "safety_margin_mb": 0}]})";
  if (from.empty()) return text;
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the scenario does not contain " + from);
  return text.replace(at, from.size(), to);
}

JobsScenario read(const std::string& text) { return read_jobs(parse_document(text, "two.json")); }

std::string problems_of(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    std::string all;
    for (const Problem& one : error.problems()) all += one.where + " " + one.what + "\n";
    return all;
  }
  return "none";
}

TEST(JobTuners, WhatCannotBeIsRefusedInALine) {
  EXPECT_EQ(problems_of(two_jobs()), "none");
  EXPECT_EQ(problems_of(two_jobs("[2, 40]", "[2, 80]")),
            "two.json: /jobs/0/tuner/bounds/batch [2, 80] goes beyond the model's range, [1, 64].\n");
  EXPECT_EQ(problems_of(two_jobs("[2, 40]", "[4, 40]")),
            "two.json: /jobs/0/tuner/bounds the job starts at batch 2, outside [4, 40].\n");
  EXPECT_THAT(problems_of(two_jobs(R"("bounds": {"batch")", R"("bounds": {"bach")")),
              HasSubstr("two.json: /jobs/0/tuner/bounds/bach "));
  EXPECT_EQ(problems_of(two_jobs("\"fidelity\": \"steps\",", "")),
            "two.json: /jobs/0/tuner moves simulated steps; set the scenario's \"fidelity\" to \"steps\".\n");
  EXPECT_THAT(problems_of(two_jobs("threshold-step", "thresold-step")),
              HasSubstr("two.json: /jobs/0/tuner/use no policy \"thresold-step\". Did you mean"));
  EXPECT_THAT(problems_of(two_jobs("\"adjustment_frequency\": 5", "\"adjustment_frequncy\": 5")),
              HasSubstr("two.json: /jobs/0/tuner/adjustment_frequncy "));
  EXPECT_THAT(problems_of(two_jobs("\"use\": \"threshold-step\", ", "")),
              HasSubstr("two.json: /jobs/0/tuner \"use\" is missing"));
  EXPECT_EQ(problems_of(two_jobs("\"steps\": 100,", "\"phases\": [{\"steps\": 100}],")),
            "two.json: /jobs/0/tuner goes with neither \"phases\" nor \"variants\".\n");
  const std::string flat = R"({"version": 1, "kind": "jobs", "name": "flat", "fidelity": "steps",
    "cards": [{"total": "8GiB"}], "policies": [{"use": "job-queue"}],
    "jobs": [{"need": "3GiB", "duration_s": 10, "tuner": {"use": "fixed"}}]})";
  EXPECT_EQ(problems_of(flat), "two.json: /jobs/0/tuner goes with \"model\", which is not given.\n");
}

// The model takes 1 GiB + 0.5 GiB a sample beside the context: a batch of 12 has 7 GiB of 8.
TEST(JobTuners, FatesAndMomentsSayWhatTheTunerDid) {
  JobsScenario scenario = read(two_jobs());
  scenario.setup.keep_moments = true;
  const auto results = compare_queues(scenario);
  const Json json = jobs_json(scenario, results)["policies"][0];
  const Json& job = json["jobs"][0];
  EXPECT_EQ(job["promised"], 3_GiB);
  EXPECT_EQ(job["point"]["batch"], json["moves"][0]["course"].back()[3][0]);
  EXPECT_GT(job["changes"], 0);
  EXPECT_EQ(job["failed_steps"], 0);
  const Json& tuner = json["moves"][0];
  EXPECT_EQ(tuner["policy"], "threshold-step");
  EXPECT_EQ(tuner["parameters"].dump(), R"(["batch"])");
  EXPECT_EQ(tuner["course"][0].dump(), R"([0.0,0,"start",[2],""])");
  EXPECT_EQ(std::ssize(tuner["course"]), 1 + job["changes"].get<std::int64_t>());
  EXPECT_EQ(tuner["course"][1][1], 5);
  EXPECT_EQ(tuner["course"][1][2], "change");
  EXPECT_THAT(courses_csv(scenario.setup, results[0].run),
              testing::StartsWith("name,time_s,step,event,point,reason\n\"a, b\",0.0,0,start,batch 2,\n"));
  EXPECT_THAT(
      fates_csv(scenario.setup, results[0].run),
      testing::StartsWith("name,state,cards,submitted_s,started_s,ended_s,batch,accumulation,kills,promised,"
                          "most_used,point,changes,failed_steps,samples,reason\n"));
  const Figures figures{results[0].metrics};
  EXPECT_EQ(figures["overruns"], 1);
  EXPECT_EQ(figures["samples"], job["samples"]);
  EXPECT_EQ(figures["tuner_changes"], job["changes"]);
}

// Without tuners there is nothing to say of them.
TEST(JobTuners, OtherScenariosShowNothingOfThem) {
  const JobsScenario scenario = read_jobs(parse_document(
      R"({"version": 1, "kind": "jobs", "name": "plain", "cards": [{"total": "8GiB"}],
          "jobs": [{"need": "3GiB", "duration_s": 10}], "policies": [{"use": "job-queue"}]})",
      "plain.json"));
  const auto results = compare_queues(scenario);
  const Json json = jobs_json(scenario, results)["policies"][0];
  EXPECT_FALSE(json.contains("moves"));
  EXPECT_FALSE(json["jobs"][0].contains("changes"));
  EXPECT_TRUE(json["metrics"]["samples"].is_null());
  EXPECT_EQ(json["metrics"]["overruns"], 0);
  EXPECT_FALSE(steered_table(scenario.setup, results).has_value());
}

// What is drawn of a card is what the books have of it, at every moment.
TEST(JobTuners, DrawnMemoryAddsUpToThatOfTheCard) {
  JobsScenario scenario = read(two_jobs("\"count\": 1", "\"count\": 2, \"every_s\": 1"));
  scenario.setup.keep_moments = true;
  const JobQueueRun run = compare_queues(scenario)[0].run;
  const std::vector<QueueBar> boxes = held_bars(run, 0);
  std::size_t compared = 0;
  for (std::size_t i = 0; i + 1 < run.moments.size(); ++i) {
    const CardMoment& moment = run.moments[i];
    if (run.moments[i + 1].time == moment.time) continue;
    Bytes sum = 0;
    Bytes top = 0;
    for (const QueueBar& box : boxes) {
      if (box.from > moment.time || box.to <= moment.time) continue;
      sum += box.memory;
      top = std::max(top, *box.low + box.memory);
    }
    EXPECT_EQ(sum, moment.used) << to_seconds(moment.time);
    EXPECT_EQ(top, moment.used) << to_seconds(moment.time);
    ++compared;
  }
  EXPECT_GT(compared, 20u);
  std::int64_t failed = 0;
  for (const JobRecord& job : run.jobs) failed += job.tuning->failed_steps;
  EXPECT_GT(failed, 0);
  EXPECT_EQ(std::ssize(failures_on(run, 0)), failed);
  const auto curves = parameter_curves(scenario.setup, run);
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[1].name, "a, b 2: batch");
  EXPECT_EQ(curves[1].values.front(), (std::pair<SimTime, double>{std::chrono::seconds{1}, 2}));
  EXPECT_TRUE(std::isnan(curves[1].values.back().second));
}

// A model of two parameters, whose libraries search at each new point: the same changes for the same reasons.
TEST(JobTuners, AloneAJobDecidesAsItsTraining) {
  const std::string model = R"("model": "models/superres-rrdb6.json")";
  const std::string tuner = R"("use": "predictive", "target_vram_usage": 0.85)";
  const TrainingScenario training = read_training(parse_document(
      R"({"version": 1, "kind": "training", "name": "alone", "device": {"total": "12GiB", "context": "512MiB"},
          "workload": {)" +
          model + R"(, "iterations": 60, "start": {"batch": 4, "lq": 40},
                       "bounds": {"batch": [1, 64], "lq": [32, 128]}}, "policies": [{)" +
          tuner + "}]}",
      "alone.json"));
  const JobsScenario queue = read_jobs(parse_document(
      R"({"version": 1, "kind": "jobs", "name": "alone", "fidelity": "steps",
          "cards": [{"total": "12GiB", "context": "512MiB"}],
          "jobs": [{)" +
          model + R"(, "steps": 60, "batch": 4, "at": {"lq": 40},
                    "tuner": {"bounds": {"batch": [1, 64], "lq": [32, 128]}, )" +
          tuner + R"(}}],
          "policies": [{"use": "job-queue"}]})",
      "alone.json"));
  const PolicyResult expected = run_policy(training, training.policies.front());
  const JobTuning made = *compare_queues(queue)[0].run.jobs[0].tuning;
  std::vector<std::pair<std::int64_t, Point>> changes;
  std::vector<std::pair<std::int64_t, Point>> training_changes;
  for (const TunedMoment& one : made.course) {
    if (one.kind == TunedMoment::Kind::change) changes.emplace_back(one.step, one.point);
  }
  for (const Adjustment& one : expected.run.adjustments) training_changes.emplace_back(one.iteration, one.to);
  EXPECT_EQ(changes, training_changes);
  EXPECT_GE(changes.size(), 1u);
}

// 400 samples of 20 to 200 tokens at 4 MiB each, on a card of 4 GiB that takes some ten of them.
constexpr const char* kEpoch =
    R"({"sizes": {"resident": "256MiB", "samples": [{"images": 0, "bytes": "20MiB"}],
    "per_token": "2MiB", "floor_ms": 50, "us_per_token": 10},
  "data": {"samples": 400, "tasks": [{"name": "text", "shortest": 20, "longest": 200}]},
  "target_batch": 32, "epochs": 2})";

std::string composed(const std::string& composer, const std::string& epoch) {
  return R"({"version": 1, "kind": "jobs", "name": "composed", "seed": 7, "fidelity": "steps",
    "cards": [{"total": "4GiB", "context": "256MiB"}],
    "jobs": [{"name": "mix", "need": "3GiB", "duration_s": 60, "composer": )" +
         composer + R"(, "epoch": )" + epoch + R"(}], "policies": [{"use": "job-queue", "on_oom": "fail"}]})";
}

/// Notes the batches whose size is another one than that before: after which it came, and the size.
class SizeChanges : public BatchListener {
 public:
  void batch_ends(const BatchRecord& batch) override {
    const auto size = static_cast<std::int64_t>(batch.samples.size());
    if (changes.empty() || changes.back().second != size) changes.emplace_back(batch.number - 1, size);
    failed += batch.result == StepResult::oom ? 1 : 0;
  }
  void epoch_ends(std::int64_t /*epoch*/, const EpochTotals& /*totals*/) override {}

  std::vector<std::pair<std::int64_t, std::int64_t>> changes;
  std::int64_t failed = 0;
};

TEST(JobComposers, AloneAJobHasTheBatchesOfItsEpochs) {
  std::int64_t failed = 0;
  for (const char* composer : {R"({"use": "planned-batches", "profile": "fixed", "batch_size": 12})",
                               R"({"use": "planned-batches", "profile": "fixed", "batch_size": 8})",
                               R"({"use": "memory-aware-sampler", "profile": "table"})",
                               R"({"use": "memory-aware-sampler", "profile": "dense"})"}) {
    const EpochScenario epoch =
        read_epoch(parse_document(std::string{R"({"version": 1, "kind": "epoch", "name": "alone", "seed": 7,
          "device": {"total": "4GiB", "context": "256MiB"}, "workload": )"} +
                                      kEpoch + R"(, "policies": [)" + composer + "]}",
                                  "alone.json"));
    SizeChanges batches;
    const EpochResult expected = run_composer(epoch, epoch.policies.front(), &batches);
    const JobsScenario queue = read(composed(composer, kEpoch));
    const JobQueueRun run = compare_queues(queue)[0].run;
    const JobTuning& made = *run.jobs[0].tuning;
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;
    for (const TunedMoment& one : made.course) {
      if (one.kind == TunedMoment::Kind::change) changes.emplace_back(one.step, one.point[0]);
    }
    EXPECT_EQ(changes, batches.changes) << composer;
    EXPECT_EQ(made.failed_steps, batches.failed) << composer;
    EXPECT_EQ(made.samples, expected.run.totals.samples) << composer;
    EXPECT_EQ(run.jobs[0].outcome, expected.run.complete ? JobOutcome::completed : JobOutcome::out_of_memory)
        << composer << run.jobs[0].reason;
    failed += batches.failed;
  }
  EXPECT_GT(failed, 0);
}

TEST(JobComposers, WhatCannotBeIsRefusedInALine) {
  const std::string sampler = R"({"use": "memory-aware-sampler"})";
  EXPECT_EQ(problems_of(composed(sampler, kEpoch)), "none");
  EXPECT_EQ(problems_of(composed(R"({"use": "memory-aware-sampler", "tuner": {"use": "fixed"}})", kEpoch)),
            "two.json: /jobs/0/composer/tuner a composer in a job has no tuner of its own.\n");
  EXPECT_THAT(problems_of(composed(R"({"use": "memory-sampler"})", kEpoch)),
              HasSubstr("two.json: /jobs/0/composer/use no composer of batches \"memory-sampler\""));
  EXPECT_THAT(problems_of(composed(sampler, R"({"model": "models/mixed-tasks.json"})")),
              HasSubstr("two.json: /jobs/0/epoch \"data\" is missing"));
  EXPECT_THAT(problems_of(composed(sampler, R"({"data": {"samples": 4}})")),
              HasSubstr("two.json: /jobs/0/epoch/data give either"));
  std::string text = composed(sampler, kEpoch);
  text.replace(text.find(", \"epoch\": "), std::string{", \"epoch\": "}.size() + std::string{kEpoch}.size(),
               "");
  EXPECT_EQ(problems_of(text),
            "two.json: /jobs/0/composer goes with \"epoch\", its model and its data, which is not given.\n");
  text = composed(sampler, kEpoch);
  text.replace(text.find("\"fidelity\": \"steps\","), std::string{"\"fidelity\": \"steps\","}.size(), "");
  EXPECT_EQ(problems_of(text),
            "two.json: /jobs/0/composer puts simulated batches together; set the "
            "scenario's \"fidelity\" to \"steps\".\n");
}

}  // namespace
}  // namespace vramlab
