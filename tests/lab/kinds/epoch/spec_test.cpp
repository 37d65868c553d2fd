// What a file of kind `epoch` says of phases, faults, cards and step limits, and what comes of it.
#include "lab/kinds/epoch/spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/json.hpp"

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

EpochScenario parse(const Json& json) {
  return read_epoch(parse_document(json.dump(), VRAMLAB_SOURCE_DIR "/scenarios/example.json"));
}

Json result_of(const Json& json) {
  const EpochScenario scenario = parse(json);
  return epoch_json(scenario, compare_composers(scenario))["policies"][0];
}

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

TEST(EpochScenario, RefusesFaultsAndPhasesThatAnEpochCannotHave) {
  Json json = example();
  json["faults"] = Json::parse(R"({"apply_delay": 2})");
  EXPECT_THAT(errors_of(json), HasSubstr("/faults/apply_delay: unknown key"));
  json = example();
  json["workload"]["phases"] = Json::parse(R"([{"name": "validation", "every": 5, "samples": 13}])");
  EXPECT_THAT(errors_of(json), HasSubstr("/workload/phases/0/samples: the data set has 12 samples."));
}

}  // namespace
}  // namespace vramlab
