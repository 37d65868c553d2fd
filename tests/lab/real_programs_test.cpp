// What each family of policies decided in real PyTorch training, against what it decides in the simulator
// with the model of the same program: a decoder of 12 layers on an H200 under limits
// (tests/data/real-programs, docs/fidelity.md).
#include <algorithm>
#include <cmath>
#include <fstream>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/kinds/training/run.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

Json real_log(const std::string& name) {
  return read_json_file(VRAMLAB_SOURCE_DIR "/tests/data/real-programs/" + name + ".json.gz");
}

ScenarioDocument llama_scenario(const std::string& kind, Json more) {
  more["version"] = 1;
  more["name"] = "llama";
  more["kind"] = kind;
  return parse_document(more.dump(), VRAMLAB_SOURCE_DIR "/scenarios/llama.json");
}

Json h200_limited_to(const Json& log) { return {{"gpu", "h200-141gb"}, {"limit", log["limit"]}}; }

/// The most by which pairs of figures differ, as a share of the first.
class LargestDifference {
 public:
  void add(const Json& real, Bytes simulated) {
    const auto value = real.get<double>();
    largest_ = std::max(largest_, std::abs(static_cast<double>(simulated) - value) / value);
  }
  [[nodiscard]] double share() const { return largest_; }

 private:
  double largest_ = 0;
};

/// Iteration and batch from then on.
using Changes = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct TunerCase {
  const char* use;
  std::int64_t frequency;
  std::size_t changes;
  std::size_t failed;
  double peak_difference;
};

class TunerInRealTraining : public testing::TestWithParam<TunerCase> {};

TEST_P(TunerInRealTraining, DecidesAsSimulated) {
  const auto [use, frequency, count, failed, difference] = GetParam();
  const Json log = real_log(std::string{"tuner-"} + use);
  const TrainingScenario scenario = read_training(
      llama_scenario("training", {{"device", h200_limited_to(log)},
                                  {"workload",
                                   {{"model", "models/llama.json"},
                                    {"iterations", log["rows"].size()},
                                    {"start", {{"batch", 2}, {"seq", 512}}},
                                    {"bounds", {{"batch", {1, 64}}, {"seq", {512, 512}}}}}},
                                  {"policies", {{{"use", use}, {"adjustment_frequency", frequency}}}}}));
  const TrainingRun run = run_policy(scenario, scenario.policies.front()).run;
  Changes real;
  for (const Json& one : log["adjustments"]) real.emplace_back(one["iteration"], one["to"]["batch"]);
  Changes simulated;
  for (const Adjustment& one : run.adjustments) simulated.emplace_back(one.iteration, one.to[0]);
  EXPECT_EQ(simulated, real);
  EXPECT_EQ(real.size(), count);
  ASSERT_EQ(run.iterations.size(), log["rows"].size());
  std::size_t real_failed = 0;
  LargestDifference peaks;
  for (std::size_t i = 0; i < run.iterations.size(); ++i) {
    const Json& row = log["rows"][i];
    const bool is_failed = row["failed"].get<bool>();
    EXPECT_EQ(run.iterations[i].result == StepResult::oom, is_failed) << "step " << i + 1;
    real_failed += is_failed ? 1 : 0;
    if (!is_failed) peaks.add(row["peak_allocated"], run.iterations[i].memory.peak_allocated);
  }
  EXPECT_EQ(real_failed, failed);
  EXPECT_LT(peaks.share(), difference);
}

INSTANTIATE_TEST_SUITE_P(RealPrograms, TunerInRealTraining,
                         testing::Values(TunerCase{"predictive", 25, 3, 0, 0.0006},
                                         TunerCase{"aimd", 5, 19, 1, 0.0025},
                                         TunerCase{"threshold-step", 5, 10, 0, 0.002}),
                         [](const auto& one) {
                           std::string name = one.param.use;
                           std::erase(name, '-');
                           return name;
                         });

// Batch and a second parameter move. Each log has the rows of one real run, and how many runs made the same
// changes.

struct TwoParameters {
  const char* log;
  const char* model;
  std::int64_t most_batch;  ///< that the model may be asked for; 0 = as it says
  std::size_t changes;
  std::size_t failed;
  std::int64_t later;       ///< steps by which simulated changes after the first come later
  std::size_t equal_peaks;  ///< rows at the real point with the real peak of allocated memory, at least
  double peak_difference;   ///< of all rows at the real point, at most
};

void PrintTo(const TwoParameters& run, std::ostream* out) { *out << run.log; }

class PredictiveInRealTraining : public testing::TestWithParam<TwoParameters> {
 protected:
  std::string model_file() {
    Json model = read_json_file(std::string{VRAMLAB_SOURCE_DIR "/"} + GetParam().model);
    if (GetParam().most_batch > 0) model["parameters"]["batch"][1] = GetParam().most_batch;
    const std::string file = folder_.file("model.json");
    std::ofstream{file} << model.dump();
    return file;
  }

 private:
  ScratchFolder folder_;
};

TEST_P(PredictiveInRealTraining, MakesTheSameChangesOfTwoParameters) {
  const TwoParameters& expected = GetParam();
  const Json log = real_log(std::string{"predictive-"} + expected.log);
  Json policy = log["options"];
  policy["use"] = "predictive";
  const TrainingScenario scenario =
      read_training(llama_scenario("training", {{"device", h200_limited_to(log)},
                                                {"workload",
                                                 {{"model", model_file()},
                                                  {"iterations", log["iterations"]},
                                                  {"start", log["start"]},
                                                  {"bounds", log["bounds"]}}},
                                                {"policies", Json::array({policy})}}));
  const TrainingRun run = run_policy(scenario, scenario.policies.front()).run;
  const std::string second = log["columns"][1];
  using Change = std::pair<std::int64_t, Point>;
  std::vector<Change> real;
  for (const Json& one : log["adjustments"]) {
    const std::int64_t later = real.empty() ? 0 : expected.later;
    real.emplace_back(one["iteration"].get<std::int64_t>() + later,
                      Point{one["to"]["batch"], one["to"][second]});
  }
  std::vector<Change> simulated;
  for (const Adjustment& one : run.adjustments) simulated.emplace_back(one.iteration, one.to);
  EXPECT_EQ(simulated, real);
  EXPECT_EQ(real.size(), expected.changes);
  ASSERT_EQ(run.iterations.size(), log["rows"].size());
  std::size_t failed = 0;
  std::size_t equal = 0;
  LargestDifference peaks;
  for (std::size_t i = 0; i < run.iterations.size(); ++i) {
    const Json& row = log["rows"][i];  // batch, the second parameter, allocated, its peak, reserved, failed
    const bool is_failed = row[5] == 1;
    EXPECT_EQ(run.iterations[i].result == StepResult::oom, is_failed) << "step " << i + 1;
    failed += is_failed ? 1 : 0;
    if (is_failed || run.iterations[i].point() != Point{row[0], row[1]}) continue;
    equal += row[3] == run.iterations[i].memory.peak_allocated ? 1 : 0;
    peaks.add(row[3], run.iterations[i].memory.peak_allocated);
  }
  EXPECT_EQ(failed, expected.failed);
  EXPECT_GE(equal, expected.equal_peaks);
  EXPECT_LT(peaks.share(), expected.peak_difference);
}

INSTANTIATE_TEST_SUITE_P(
    RealPrograms, PredictiveInRealTraining,
    testing::Values(TwoParameters{"llama", "models/llama.json", 0, 3, 0, 0, 7, 0.0006},
                    TwoParameters{"llama-16gib", "models/llama.json", 128, 5, 0, 0, 13, 0.0003},
                    TwoParameters{"llama-checkpointed", "models/llama-checkpointed.json", 0, 4, 1, 0, 68,
                                  0.0005},
                    TwoParameters{"vit", "models/vit.json", 0, 4, 0, 0, 400, 1e-9},
                    TwoParameters{"vit-6gib", "models/vit.json", 512, 3, 0, 0, 25, 0.0009},
                    TwoParameters{"gpt2", "models/gpt2.json", 0, 4, 0, 0, 7, 0.0008},
                    // its readings at (4, 128) are steady a step later than the real ones
                    TwoParameters{"bert", "models/bert-base.json", 0, 5, 0, 1, 8, 0.0051}),
    [](const auto& one) {
      std::string name = one.param.log;
      std::erase(name, '-');
      return name;
    });

/// A batch as it ran: its samples, and whether it failed.
using RanBatch = std::pair<std::vector<SampleId>, bool>;

struct BatchLog : BatchListener {
  std::vector<RanBatch> batches;
  std::vector<Bytes> peaks;
  void batch_ends(const BatchRecord& batch) override {
    batches.push_back({{batch.samples.begin(), batch.samples.end()}, batch.result == StepResult::oom});
    peaks.push_back(batch.peak_allocated);
  }
  void epoch_ends(std::int64_t, const EpochTotals&) override {}
};

// Two epochs over 600 texts of 16 to 512 tokens: every batch holds the same texts in the same order.
TEST(RealPrograms, SamplerComposesTheSameBatches) {
  const Json log = real_log("sampler");
  const ScratchFolder folder;
  std::string list = "task,images,length\n";
  for (const Json& length : log["lengths"]) list += fmt::format("text,0,{}\n", length.get<int>());
  const std::string file = folder.file("texts.csv");
  std::ofstream{file} << list;
  const EpochScenario scenario = read_epoch(
      llama_scenario("epoch", {{"device", h200_limited_to(log)},
                               {"workload",
                                {{"model", "models/llama.json"},
                                 {"data", {{"list", file}, {"tasks", Json::array({{{"name", "text"}}})}}},
                                 {"epochs", 2}}},
                               {"policies", {{{"use", "memory-aware-sampler"}}}}}));
  BatchLog simulated;
  run_composer(scenario, scenario.policies.front(), &simulated);
  std::vector<RanBatch> real;
  LargestDifference peaks;
  for (const Json& row : log["rows"]) {
    real.emplace_back(row["samples"].get<std::vector<SampleId>>(), row["failed"]);
    if (real.size() <= simulated.peaks.size()) {
      peaks.add(row["peak_allocated"], simulated.peaks[real.size() - 1]);
    }
  }
  EXPECT_EQ(real.size(), 86u);
  EXPECT_EQ(simulated.batches, real);
  EXPECT_LT(peaks.share(), 6e-6);
}

// Six batches of 64 texts where 8 fit: every one is cut down to eight pieces.
TEST(RealPrograms, GuardCutsAlike) {
  const Json log = real_log("guard");
  const EpochScenario scenario = read_epoch(llama_scenario(
      "epoch", {{"device", h200_limited_to(log)},
                {"workload",
                 {{"model", "models/llama.json"},
                  {"data",
                   {{"samples", 384},
                    {"tasks", Json::array({{{"name", "text"}, {"shortest", 512}, {"longest", 512}}})}}},
                  {"shuffle", false},
                  {"target_batch", 64}}},
                {"policies",
                 {{{"use", "planned-batches"},
                   {"profile", "fixed"},
                   {"batch_size", 64},
                   {"guardian", true},
                   {"halvings", 6},
                   {"safety_margin", 0},
                   {"reset_at_epoch_end", false}}}}}));
  BatchLog simulated;
  run_composer(scenario, scenario.policies.front(), &simulated);
  using Pieces = std::vector<std::pair<std::size_t, bool>>;
  Pieces real;
  for (const Json& piece : log["pieces"]) real.emplace_back(piece["size"], piece["failed"]);
  Pieces pieces;
  for (const auto& [samples, failed] : simulated.batches) pieces.emplace_back(samples.size(), failed);
  EXPECT_EQ(real.size(), 90u);
  EXPECT_EQ(std::ranges::count(real, true, &Pieces::value_type::second), 42);
  EXPECT_EQ(pieces, real);
}

struct SearchCase {
  const char* label;
  const char* use;
  const char* profile;
  std::int64_t batch;
  std::size_t probes;
};

class SearchInRealTraining : public testing::TestWithParam<SearchCase> {};

TEST_P(SearchInRealTraining, ProbesAndAnswersAsSimulated) {
  const auto [label, use, profile, batch, count] = GetParam();
  const Json log = real_log("searches");
  Json policy{{"use", use}};
  if (*profile != '\0') policy["profile"] = profile;
  const SearchScenario scenario = read_search(llama_scenario(
      "search",
      {{"device", h200_limited_to(log)},
       {"workload",
        {{"model", "models/llama.json"}, {"start", {{"seq", 512}}}, {"bounds", {{"batch", {1, 64}}}}}},
       {"policies", {policy}}}));
  const auto results = compare_searchers(scenario);
  const BatchSearchRun& run = results.front().buckets.front().run;
  using Probes = std::vector<std::pair<std::int64_t, std::string>>;
  Probes real;
  for (const Json& probe : log["searchers"][label]["probes"])
    real.emplace_back(probe["batch"], probe["outcome"]);
  Probes simulated;
  for (const SearchTrial& trial : run.trials) {
    simulated.emplace_back(trial.probe.batch, probe_outcome_name(trial.probe.outcome));
  }
  EXPECT_EQ(simulated, real);
  EXPECT_EQ(real.size(), count);
  EXPECT_EQ(run.answer.batch, batch);
  EXPECT_EQ(log["searchers"][label]["batch"], batch);
}

INSTANTIATE_TEST_SUITE_P(RealPrograms, SearchInRealTraining,
                         testing::Values(SearchCase{"model", "model", "", 11, 6},
                                         SearchCase{"binsearch repaired", "binsearch", "repaired", 12, 8},
                                         SearchCase{"doubling-bisect peer", "doubling-bisect", "peer", 13, 7},
                                         SearchCase{"bucket-bisect", "bucket-bisect", "", 13, 6},
                                         SearchCase{"back-off", "back-off", "nine-tenths", 13, 14},
                                         SearchCase{"halving", "back-off", "halving", 8, 4}),
                         [](const auto& one) {
                           std::string name = one.param.label;
                           std::erase_if(name, [](char c) { return c == '-' || c == ' '; });
                           return name;
                         });

/// How a job went: its batch, its accumulation steps, whether it waited for another's end, and whether it ran
/// out of memory.
using JobStory = std::tuple<std::int64_t, std::int64_t, bool, bool>;

// Two processes of one card, the second three seconds behind the first.
TEST(RealPrograms, GateAdmitsAlike) {
  const Json log = real_log("gate");
  ASSERT_EQ(log["cases"].size(), 4u);
  for (const auto& [name, one] : log["cases"].items()) {
    Json policy{{"use", "job-queue"}};
    policy.update(one["options"]);
    if (name == "no gate") policy.update({{"profile", "no-admission"}, {"on_oom", "fail"}});
    Json jobs = Json::array();
    std::vector<JobStory> real;
    double first_end = 0;
    for (const Json& job : one["jobs"]) {
      const Json& begins = job["events"][1];
      const Json& ends = job["events"].back();
      const bool waited = begins["t"].get<double>() > job["events"][0]["t"].get<double>() + 1;
      if (waited) {
        EXPECT_GT(begins["t"].get<double>(), first_end);
      }
      first_end = ends["t"];
      real.emplace_back(begins["batch"], begins["accumulation"], waited, ends["what"] == "out of memory");
      jobs.push_back({{"name", job["name"]},
                      {"arrival_s", jobs.empty() ? 0 : 3},
                      {"model", "models/llama.json"},
                      {"at", {{"seq", 512}}},
                      {"steps", one["steps"]},
                      {"need", "2304MiB"},
                      {"per_sample", "460.8MiB"},
                      {"batch", one["batch"]}});
    }
    const JobsScenario scenario =
        read_jobs(llama_scenario("jobs", {{"fidelity", "steps"},
                                          {"cards", {{{"total", one["card"]}, {"context", 552402944}}}},
                                          {"start_up_s", 12},
                                          {"jobs", jobs},
                                          {"policies", {policy}}}));
    std::vector<JobStory> simulated;
    const auto results = compare_queues(scenario);
    for (const JobRecord& job : results.front().run.jobs) {
      simulated.emplace_back(job.split.batch, job.split.accumulation, job.waited > SimTime{0}, job.ooms > 0);
    }
    EXPECT_EQ(simulated, real) << name;
  }
}

}  // namespace
}  // namespace vramlab
