// What a file of kind `epoch` says of its data, phases, faults, cards and step limits, and what comes of it.
#include "lab/kinds/epoch/spec.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/json.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

using ::testing::HasSubstr;

// 12 samples of 100 MiB, one a batch, 50 ms each.
Json example() {
  return Json::parse(R"({
    "version": 1, "kind": "epoch", "name": "example",
    "device": {"total": "1GiB", "context": 0},
    "workload": {
      "sizes": {"per_token": "1MiB"},
      "data": {"samples": 12, "tasks": [{"name": "T1", "shortest": 100, "longest": 100}]},
      "target_batch": 1
    },
    "policies": [{"use": "planned-batches", "profile": "fixed", "label": "fixed"}]
  })");
}

ScenarioDocument document_of(const Json& json) {
  return parse_document(json.dump(), VRAMLAB_SOURCE_DIR "/scenarios/example.json");
}

EpochScenario parse(const Json& json) { return read_epoch(document_of(json)); }

Json results_of(const Json& json) {
  const EpochScenario scenario = parse(json);
  return epoch_json(scenario, compare_composers(scenario))["policies"];
}

Json result_of(const Json& json) { return results_of(json)[0]; }

std::string errors_of(const Json& json) {
  try {
    parse(json);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(EpochScenario, APhaseThatFailsIsCountedAndTheEpochGoesOn) {
  Json json = example();
  json["workload"]["phases"] = Json::parse(R"([{"name": "validation", "every": 5, "samples": 12}])");
  const Json result = result_of(json);
  EXPECT_EQ(result["phases"]["ooms"], 2);
  EXPECT_EQ(result["metrics"]["ooms"], 0);
  EXPECT_EQ(result["metrics"]["samples"], 12);
}

// Of a model that was never timed: the driver's calls alone are no rate.
TEST(EpochScenario, WithoutTimesThereAreNoRates) {
  ScratchFolder folder;
  Json model = read_json_file(VRAMLAB_SOURCE_DIR "/models/bert-base.json");
  model["step_time"] = Json::parse(R"({"floor_ms": 0.0, "base_ms": 0.0, "us_per": {}})");
  std::ofstream{folder.file("untimed.json")} << model.dump();
  Json json = example();
  json["device"]["total"] = "16GiB";
  json["workload"].erase("sizes");
  json["workload"]["model"] = folder.file("untimed.json");
  const auto experiment = read_experiment(document_of(json));
  experiment->run({});
  const Json metrics = experiment->json()["policies"][0]["metrics"];
  EXPECT_EQ(metrics["samples"], 12);
  for (const char* name : {"duration_s", "samples_per_s", "tokens_per_s", "oom_time_share"}) {
    EXPECT_TRUE(metrics[name].is_null()) << name;
  }
  EXPECT_THAT(experiment->verdict(), HasSubstr(" of the memory used, without an OOM"));
  EXPECT_THAT(experiment->head()[2], HasSubstr("never timed"));
}

TEST(EpochScenario, AFaultIsThatOfItsBatch) {
  Json json = example();
  json["faults"] = Json::parse(R"({"leak": {"bytes_per_step": "16MiB", "from": 2, "to": 5}})");
  const Json result = result_of(json);
  EXPECT_EQ(result["faults"]["leaked_bytes"], 64 * 1024 * 1024);
  EXPECT_EQ(result["metrics"]["peak_allocated_ratio"], 164.0 / 1024);
}

TEST(EpochScenario, AStepLimitEndsTheEpochAndSaysSo) {
  Json json = example();
  json["workload"]["max_steps"] = 7;
  const Json result = result_of(json);
  EXPECT_EQ(result["metrics"]["batches"], 7);
  EXPECT_EQ(result["ended_early"], "max_steps: 7 batches were run");
}

TEST(EpochScenario, EveryCardPerformsEveryBatch) {
  Json json = example();
  json["more_devices"] = Json::parse(R"([{"total": "200MiB", "context": 0}])");
  EXPECT_EQ(result_of(json)["metrics"]["peak_allocated_ratio"], 0.5);
}

// 12 samples of 20 to 130 positions in batches of 4, 10 MiB and 1 ms a position: sorted by length they take
// 4 · (50 + 90 + 130) ms, in the order of the file 4 · (120 + 110 + 130), end to end 900.
TEST(EpochScenario, PaddingCostsTimeAndPackingSavesIt) {
  const ScratchFolder folder;
  std::ofstream{folder.path() / "lengths.csv"}
      << "tokens\n20\n60\n100\n120\n30\n70\n110\n90\n40\n80\n130\n50\n";
  Json json = example();
  json["device"]["total"] = "8GiB";
  json["workload"]["sizes"] = Json::parse(R"({"per_token": "10MiB", "floor_ms": 0, "us_per_token": 1000})");
  json["workload"]["data"] = {{"lengths", (folder.path() / "lengths.csv").string()}};
  json["workload"]["shuffle"] = false;
  json["workload"].erase("target_batch");
  json["policies"] = Json::parse(R"([
    {"use": "planned-batches", "profile": "fixed", "batch_size": 4},
    {"use": "planned-batches", "profile": "fixed", "batch_size": 4, "order": "by-length", "label": "sorted"}
  ])");
  const auto metrics = [](const Json& result) {
    return std::pair{result["metrics"]["padding_share"].get<double>(),
                     result["metrics"]["peak_allocated_ratio"].get<double>()};
  };
  const auto seconds = [](const Json& result) { return result["metrics"]["duration_s"].get<double>(); };
  const Json padded = results_of(json);
  EXPECT_NEAR(seconds(padded[0]), 1.44, 0.02);  // and what the driver takes
  EXPECT_NEAR(seconds(padded[1]), 1.08, 0.02);
  EXPECT_EQ(metrics(padded[0]), (std::pair{540.0 / 1440, 4 * 1300.0 / 8192}));
  EXPECT_EQ(metrics(padded[1]), (std::pair{180.0 / 1080, 4 * 1300.0 / 8192}));
  json["workload"]["collator"] = "pack";
  const Json packed = results_of(json);
  for (const Json& result : packed) EXPECT_NEAR(seconds(result), 0.9, 0.02);
  EXPECT_EQ(metrics(packed[0]), (std::pair{0.0, 3000.0 / 8192}));
  EXPECT_EQ(metrics(packed[1]), (std::pair{0.0, 4600.0 / 8192}));
}

// The right answer of ../shared/cases: less padding is faster.
TEST(EpochScenario, SortedUtterancesTakeLessTime) {
  const std::filesystem::path file = VRAMLAB_SOURCE_DIR "/../shared/cases/epoch/e01-pocket-tts-309.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file << ": not part of the project";
  for (const CheckedExpectation& one : check_expectations(read_seeds(read_document(file)))) {
    EXPECT_TRUE(one.ok) << one.policy << " " << one.metric << " is " << one.value << ", not " << one.bound;
  }
}

TEST(EpochScenario, WithoutATargetEveryBatchIsAStep) {
  Json json = example();
  json["workload"].erase("target_batch");
  json["policies"][0]["batch_size"] = 5;
  for (const char* kind : {"exact", "adaptive"}) {
    json["policies"][0]["accumulation"] = kind;
    const Json metrics = result_of(json)["metrics"];
    EXPECT_EQ(metrics["optimizer_steps"], 3) << kind;
    EXPECT_EQ(metrics["largest_step"], 5) << kind;
  }
  EXPECT_THAT(read_experiment(document_of(json))->head().front(), HasSubstr("every batch a step"));
  json["workload"]["scale_gradient"] = true;
  EXPECT_THAT(errors_of(json), HasSubstr("/workload/scale_gradient: needs a \"target_batch\""));
}

// 1 GiB holds 1,024 positions of 1 MiB; a phase takes the first of what is left.
TEST(EpochScenario, SamplesThatFitNowhereAreSetAsideAndCounted) {
  const ScratchFolder folder;
  std::ofstream{folder.path() / "lengths.csv"} << "tokens\n2000\n100\n0\n1024\n1026\n300\n";
  Json json = example();
  json["workload"]["data"] = {{"lengths", (folder.path() / "lengths.csv").string()}};
  const Json whole = result_of(json)["metrics"];
  EXPECT_EQ(whole["untrained_samples"], 2);
  EXPECT_EQ(whole["set_aside_samples"], 0);
  json["workload"]["data"]["set_aside"] = true;
  json["workload"]["phases"] = Json::parse(R"([{"name": "validation", "every": 1, "samples": 1}])");
  const Json result = result_of(json);
  EXPECT_EQ(result["metrics"]["ooms"], 0);
  EXPECT_EQ(result["metrics"]["samples"], 3);
  EXPECT_EQ(result["metrics"]["untrained_samples"], 0);
  EXPECT_EQ(result["metrics"]["set_aside_samples"], 2);
  EXPECT_EQ(result["phases"]["ooms"], 0);
  const auto head = read_experiment(document_of(json))->head();
  ASSERT_EQ(head.size(), 4u);
  EXPECT_THAT(head[2], HasSubstr("lengths.csv: skipped 1 of 6 lines, of length 0"));
  EXPECT_THAT(head[3], HasSubstr("set aside: 2 of 5 samples, which the empty card does not hold even alone"));
  json["device"]["total"] = "64MiB";
  EXPECT_THAT(errors_of(json), HasSubstr("/workload/data/set_aside: the card holds none of the samples"));
}

TEST(EpochScenario, AListOfSamplesNamesTheTasksOfTheScenario) {
  const ScratchFolder folder;
  std::ofstream{folder.path() / "list.csv"} << "task,images,length\nB,0,10\nA,0,20\nB,0,30\n";
  Json json = example();
  json["workload"]["data"] = {{"tasks", Json::parse(R"([{"name": "A"}, {"name": "B", "weight": 2}])")},
                              {"list", (folder.path() / "list.csv").string()}};
  EXPECT_EQ(result_of(json)["tasks"]["B"]["data_share"], 2.0 / 3);
  json["workload"]["data"]["tasks"][0]["shortest"] = 5;
  EXPECT_THAT(errors_of(json), HasSubstr("/workload/data/tasks/0: its lengths are in the \"list\""));
  json["workload"]["data"].erase("list");
  json["workload"]["data"]["samples"] = 5;
  EXPECT_THAT(errors_of(json), HasSubstr("/workload/data/tasks/1: give \"shortest\" and \"longest\""));
  json["workload"]["data"] = {{"list", "list.csv"}};
  EXPECT_THAT(errors_of(json), HasSubstr("/workload/data: give either \"tasks\", with a \"list\""));
}

// GPT-2 needs more than 4 GiB for one row of 1,024 positions (models/gpt2.json), the training next to
// nothing.
TEST(EpochScenario, APhaseWithAModelOfItsOwnRuns) {
  Json json = example();
  json["device"]["total"] = "2GiB";
  json["workload"]["data"]["tasks"][0]["shortest"] = 1000;
  json["workload"]["data"]["tasks"][0]["longest"] = 1000;
  json["workload"]["phases"] =
      Json::parse(R"([{"name": "validation", "every": 5, "samples": 1, "model": "models/gpt2.json"}])");
  Json result = result_of(json);
  EXPECT_EQ(result["phases"]["ooms"], 2);
  EXPECT_EQ(result["metrics"]["samples"], 12);
  json["device"]["total"] = "8GiB";
  result = result_of(json);
  EXPECT_EQ(result["phases"]["ooms"], 0);
  EXPECT_GT(result["metrics"]["peak_allocated_ratio"], 0.2);  // of the phase: a batch takes 0.12
  json["workload"]["phases"][0]["model"] = "models/superres-rrdb6.json";
  EXPECT_THAT(errors_of(json),
              HasSubstr("/workload/phases/0/model: \"models/superres-rrdb6.json\" is not a"));
}

TEST(EpochScenario, RefusesFaultsAndPhasesThatAnEpochCannotHave) {
  Json json = example();
  json["faults"] = Json::parse(R"({"apply_delay": 2})");
  EXPECT_THAT(errors_of(json), HasSubstr("/faults/apply_delay: unknown key"));
  json = example();
  json["workload"]["phases"] = Json::parse(R"([{"name": "validation", "every": 5, "samples": 13}])");
  EXPECT_THAT(errors_of(json), HasSubstr("/workload/phases/0/samples: the data set has 12 samples."));
}

// A card of 1 GiB; a row takes 100 MiB.
Json with_tuner(const char* tuner) {
  Json json = example();
  json["workload"].erase("target_batch");
  json["policies"] = {{{"use", "memory-aware-sampler"}, {"tuner", Json::parse(tuner)}}};
  return json;
}

// `aimd` adds 100 MiB after every batch that leaves the peak below 0.9, and the composer learns within one
// batch what a row takes.
TEST(EpochScenario, ATunerMovesTheBudgetOfAComposer) {
  Json json = with_tuner(R"({"use": "aimd", "increase": 100, "adjustment_frequency": 1,
                             "budget": {"from": "100MiB", "to": "1000MiB", "start": "250MiB"}})");
  json["workload"]["phases"] = Json::parse(R"([{"name": "validation", "every": 1, "samples": 1}])");
  const Json result = result_of(json);
  EXPECT_EQ(result["label"], "dense + aimd");
  const Json& tuner = result["tuner"];
  EXPECT_EQ(tuner["policy"], "aimd");
  EXPECT_EQ(tuner["moves"], "budget_mib");
  EXPECT_EQ(tuner["adjustments"][0]["batch"], 1);
  EXPECT_EQ(tuner["adjustments"][0]["from"], 250);
  EXPECT_EQ(tuner["adjustments"][0]["to"], 350);
  EXPECT_EQ(result["metrics"]["adjustments"], tuner["adjustments"].size());
  EXPECT_EQ(result["metrics"]["final_budget_bytes"],
            tuner["final"].get<std::uint64_t>() * std::uint64_t{1048576});
  EXPECT_EQ(result["metrics"]["samples"], 12);
}

// One process a batch: one that saves nothing begins anew, so no batch is above its first budget.
TEST(EpochScenario, ATunerThatSavesNothingBeginsAnewAfterARestart) {
  Json json = with_tuner(R"({"use": "aimd", "increase": 2, "adjustment_frequency": 1,
                             "batch_size": {"from": 1, "to": 12, "start": 2}})");
  json["policies"][0]["use"] = "planned-batches";
  json["policies"][0]["batch_size"] = 12;
  EXPECT_EQ(result_of(json)["metrics"]["batches"], 3);  // of 2, 4 and 6
  json["workload"]["restart_every"] = 1;
  EXPECT_EQ(result_of(json)["metrics"]["batches"], 6);
}

TEST(EpochScenario, RefusesTunersThatCannotMoveALimit) {
  const auto error = [](const char* tuner) { return errors_of(with_tuner(tuner)); };
  EXPECT_THAT(error(R"({"use": "aimd"})"),
              HasSubstr("/policies/0/tuner: give either \"budget\" or \"batch_size\""));
  EXPECT_THAT(error(R"({"use": "amid", "budget": {"from": "100MiB", "to": "1GiB"}})"),
              HasSubstr("/policies/0/tuner/use: no policy \"amid\". Did you mean \"aimd\"?"));
  EXPECT_THAT(error(R"({"use": "aimd", "incraese": 2, "budget": {"from": "100MiB", "to": "1GiB"}})"),
              HasSubstr("/policies/0/tuner/incraese"));
  EXPECT_THAT(error(R"({"use": "aimd", "budget": {"from": "200MiB", "to": "100MiB"}})"),
              HasSubstr("/policies/0/tuner/budget/to: 100MiB is below \"from\", 200MiB."));
  EXPECT_THAT(
      error(R"({"use": "aimd", "budget": {"from": "100MiB", "to": "2GiB"}})"),
      HasSubstr("/policies/0/tuner/budget/to: 2GiB is more than the program may use of the card, 1GiB"));
  EXPECT_THAT(
      error(R"({"use": "aimd", "budget": {"from": "100MiB", "to": "200MiB", "start": "300MiB"}})"),
      HasSubstr("/policies/0/tuner/budget/start: 300MiB is out of range; allowed is 100MiB to 200MiB."));
  EXPECT_THAT(error(R"({"use": "dual-optimizer", "budget": {"from": "100MiB", "to": "1GiB"}})"),
              HasSubstr("/policies/0/tuner: the policy dual-optimizer moves batch and lq"));
  Json json = with_tuner(R"({"use": "aimd", "budget": {"from": "100MiB", "to": "1GiB"}})");
  json["policies"][0]["use"] = "planned-batches";
  EXPECT_THAT(errors_of(json),
              HasSubstr("/policies/0/tuner/budget: the composer planned-batches obeys no budget"));
}

}  // namespace
}  // namespace vramlab
