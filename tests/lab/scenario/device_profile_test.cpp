// A profile that validate-device wrote on an H100 80GB HBM3 (driver 580.159.04), and what scenarios make of
// it.
#include "lab/scenario/device_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/kinds/training/spec.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

const std::string kFile = VRAMLAB_SOURCE_DIR "/tests/data/device/h100-profile.json";

std::string problems_of(const Json& json) {
  try {
    parse_device_profile(json, "p.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceProfile, IsReadAsItWasWritten) {
  const DeviceProfile profile = read_device_profile(kFile);
  EXPECT_EQ(profile.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(profile.driver, "580.159.04");
  EXPECT_EQ(profile.total, 85'017'493'504u);  // as in the recordings of that card
  EXPECT_EQ(profile.granularity, 2_MiB);      // R10.1
  EXPECT_EQ(profile.times.mallocs.size(), 9u);
  EXPECT_EQ(profile.times.maps.size(), 3u);
  EXPECT_EQ(profile_json(profile), read_json_file(kFile));
  EXPECT_EQ(parse_device_profile(profile_json(profile), "again"), profile);
}

TEST(DeviceProfile, NamesEveryFault) {
  Json json = read_json_file(kFile);
  json["times"]["map"].erase(1);
  json["times"]["map"].erase(1);
  json["times"]["free"][2]["bytes"] = 5;
  EXPECT_THAT(problems_of(json), HasSubstr("p.json: /times/map: needs at least two sizes."));
  EXPECT_THAT(problems_of(json), HasSubstr("p.json: /times/free/2: sizes must rise from entry to entry."));
  json = read_json_file(kFile);
  json.erase("total_bytes");
  json["contxt_bytes"] = 1;
  EXPECT_THAT(problems_of(json), HasSubstr("total_bytes"));
  EXPECT_THAT(problems_of(json), HasSubstr("contxt_bytes"));
  EXPECT_THAT(problems_of(Json::array()), HasSubstr("p.json: "));
}

TrainingScenario scenario_on(const std::string& device) {
  const std::string text =
      R"({"version": 1, "kind": "training", "name": "small", "objective": "samples_per_s",
    "device": )" +
      device + R"(,
    "workload": {"model": {"kind": "linear", "fixed": "1000MiB", "per_sample": "810MiB", "resident": "20MiB",
                           "parameters": {"batch": [2, 64]}, "step_time": {"floor_ms": 100}},
                 "iterations": 3, "start": {"batch": 8}},
    "policies": [{"use": "fixed"}]})";
  return read_training(parse_document(text, VRAMLAB_SOURCE_DIR "/scenarios/small.json"));
}

TEST(DeviceProfile, IsACardOfAScenario) {
  const DeviceProfile profile = read_device_profile(kFile);
  const TrainingScenario scenario = scenario_on(R"({"profile": ")" + kFile + R"("})");
  EXPECT_EQ(scenario.gpu, profile.name);
  EXPECT_EQ(scenario.setup.process.card_total, profile.total);
  EXPECT_EQ(scenario.setup.process.context_bytes, profile.context);
  EXPECT_EQ(scenario.setup.process.driver_times, profile.times);

  // Its driver's times are those that count: the first step reserves segments, later ones do not.
  const TrainingScenario catalogue = scenario_on(R"({"gpu": "h100-80gb"})");
  const TrainingRun one = run_policy(scenario, scenario.policies.front()).run;
  const TrainingRun other = run_policy(catalogue, catalogue.policies.front()).run;
  EXPECT_NE(one.iterations[0].duration, other.iterations[0].duration);
  EXPECT_EQ(one.iterations[2].duration, other.iterations[2].duration);
  EXPECT_EQ(one.memory.reserved_bytes.all().peak, other.memory.reserved_bytes.all().peak);
}

TEST(DeviceProfile, AScenarioNamesOneCard) {
  try {
    scenario_on(R"({"gpu": "h100-80gb", "profile": "x.json"})");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/device: give one of"));
  }
  try {
    scenario_on(R"({"profile": "missing.json"})");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/device/profile: there is no file \"missing.json\""));
  }
}

}  // namespace
}  // namespace vramlab
