// Cards on the command line: names as people write them, and the mark of a context that nobody measured.
#include <gmock/gmock.h>

#include "lab/json.hpp"
#include "tests/cli/cli_rig.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kLstmModel = "'" VRAMLAB_SOURCE_DIR "/models/lstm.json'";

struct Device {
  const char* keys;
  bool assumed;
};

// The context was measured on an H100 and an H200 only; a scenario may also say what it is.
const std::vector<Device> kDevices = {{R"("gpu": "l4")", true},
                                      {R"("total": "24GiB")", true},
                                      {R"("gpu": "l4", "context": "400MiB")", false},
                                      {R"("gpu": "h100")", false},
                                      {R"("gpu": "h200-141gb", "limit": "12GiB")", false}};

class CardCliTest : public CliTest {
 protected:
  void write(const std::string& name, const std::string& kind, const std::string& rest) const {
    std::ofstream{folder.file(name)} << R"({"version": 1, "kind": ")" + kind + R"(", "name": "small", )" +
                                            rest + "}";
  }

  static std::string model(const std::string& rest) {
    return R"("workload": {"model": {"kind": "linear", "fixed": "1000MiB", "per_sample": "810MiB",
              "resident": "20MiB", "parameters": {"batch": [2, 64]}, "step_time": {"floor_ms": 100}}, )" +
           rest + "}";
  }

  void expect_mark(const std::string& command, const std::string& mark, bool assumed) const {
    const std::string text = run(command).out;
    if (assumed) {
      EXPECT_THAT(text, HasSubstr(mark)) << command;
    } else {
      EXPECT_THAT(text, Not(HasSubstr("ssumed"))) << command;
    }
  }

  bool json_mark(const std::string& command) const {
    return Json::parse(run(command + " --json -").out)["context_assumed"].get<bool>();
  }
};

TEST_F(CardCliTest, TrainingSaysWhetherTheContextIsAssumed) {
  for (const auto& [keys, assumed] : kDevices) {
    write("t.json", "training",
          R"("objective": "samples_per_s", "device": {)" + std::string{keys} + "}, " +
              model(R"("iterations": 5, "start": {"batch": 4})") +
              R"(, "policies": [{"use": "fixed"}],
                 "expect": [{"policy": "fixed", "metric": "ooms", "equals": 0}])");
    expect_mark("compare t.json", "(context assumed)", assumed);
    expect_mark("run t.json", "Context assumed: ", assumed);
    expect_mark("check t.json", "ok   t.json (context assumed): fixed ooms", assumed);
    expect_mark("matrix t.json", "Context assumed, not measured on the card: small.", assumed);
    EXPECT_EQ(json_mark("compare t.json"), assumed) << keys;
    EXPECT_EQ(json_mark("run t.json"), assumed) << keys;
    const Json checked = Json::parse(run("check t.json --json -").out);
    EXPECT_EQ(checked["scenarios"][0]["context_assumed"], assumed) << keys;
    const Json matrix = Json::parse(run("matrix t.json --json -").out);
    EXPECT_EQ(matrix["rows"][0]["context_assumed"], assumed) << keys;
  }
}

TEST_F(CardCliTest, SearchSaysWhetherTheContextIsAssumed) {
  for (const auto& [keys, assumed] : kDevices) {
    write("s.json", "search",
          R"("device": {)" + std::string{keys} + "}, " + model(R"("max_steps": 100)") +
              R"(, "policies": [{"use": "model"}])");
    expect_mark("compare s.json", "(context assumed)", assumed);
    expect_mark("find-batch s.json", "Context assumed: ", assumed);
    EXPECT_EQ(json_mark("compare s.json"), assumed) << keys;
    EXPECT_EQ(json_mark("find-batch s.json"), assumed) << keys;
  }
}

TEST_F(CardCliTest, JobsSayItWhereProcessesAreSimulated) {
  for (const auto& [fidelity, assumed] : {std::pair{"declared", false}, {"steps", true}}) {
    write("j.json", "jobs",
          R"("fidelity": ")" + std::string{fidelity} +
              R"(", "cards": [{"gpu": "l4"}, {"gpu": "h100"}], "policies": [{"use": "job-queue"}],
              "jobs": [{"need": "8GiB", "duration_s": 10}])");
    expect_mark("compare j.json", "(contexts assumed)", assumed);
    EXPECT_EQ(json_mark("compare j.json"), assumed) << fidelity;
  }
}

TEST_F(CardCliTest, WhatIfMarksVerdictAndRows) {
  std::ofstream{folder.file("one.csv")} << "op,id,bytes\nalloc,a,1MiB\n";
  const std::string text = run("whatif one.csv --alloc-conf '' --gpu l4").out;
  EXPECT_THAT(text, StartsWith("Fits on l4-24gb (context assumed)"));
  EXPECT_THAT(text, HasSubstr("l4-24gb (21.5 GiB usable, context assumed)"));
  EXPECT_THAT(run("whatif one.csv --gpu h200").out, Not(HasSubstr("assumed")));
  // A limit below what the card has decides, whatever the context takes.
  EXPECT_THAT(run("whatif one.csv --gpu l4 --limit 8GiB").out, Not(HasSubstr("assumed")));
  const Json json = Json::parse(run("whatif one.csv --gpu L4 --gpu 'NVIDIA H100 80GB HBM3' --json -").out);
  EXPECT_EQ(json["rows"].front()["gpu"], "l4-24gb");
  EXPECT_EQ(json["rows"].front()["context_assumed"], true);
  EXPECT_EQ(json["rows"].back()["context_assumed"], false);
}

TEST_F(CardCliTest, PredictMarksItsVerdict) {
  const std::string asked = "predict " + kLstmModel + " --set batch=16 --set seq=128";
  expect_mark(asked + " --gpu l4", "Fits on l4-24gb (context assumed): ", true);
  expect_mark(asked + " --gpu l4 --largest batch", "fits on l4-24gb (context assumed)", true);
  expect_mark(asked + " --gpu l4 --limit 8GiB", "", false);
  expect_mark(asked, "", false);
  EXPECT_TRUE(json_mark(asked + " --gpu l4"));
  EXPECT_FALSE(json_mark(asked));
}

TEST_F(CardCliTest, GpusShowsFiguresAndSources) {
  EXPECT_THAT(run("gpus").out, HasSubstr("evo2 190"));
  for (const Json& gpu : Json::parse(run("gpus --json -").out)) {
    if (gpu["id"] != "l4-24gb") continue;
    EXPECT_EQ(gpu["total_bytes"], 23'654'532'383U);
    EXPECT_EQ(gpu["rounding_bytes"], 5'368'709U);
    EXPECT_EQ(gpu["seen_gib"], "22.03 to 22.16");
    EXPECT_EQ(gpu["context_assumed"], true);
    return;
  }
  FAIL() << "there is no l4-24gb";
}

TEST_F(CardCliTest, AnUnclearNameIsRefusedWithTheCandidates) {
  EXPECT_EQ(run("predict " + kLstmModel + " --gpu a100").err,
            "--gpu: \"a100\" is more than one card. Did you mean \"a100-40gb\" or \"a100-80gb\"?\n");
  EXPECT_EQ(run("predict " + kLstmModel + " --gpu a100").code, 2);
}

// As a message of PyTorch has it.
TEST_F(CardCliTest, SizesAreReadAsPyTorchPrintsThem) {
  std::ofstream{folder.file("one.csv")} << "op,id,bytes\nalloc,a,\"512.00 MiB\"\n";
  const Json json = Json::parse(run("whatif one.csv --capacity '7.93 GiB' --limit 7.21GiB --json -").out);
  EXPECT_EQ(json["rows"][0]["capacity_bytes"], 8'514'772'664U);
  EXPECT_EQ(json["rows"][0]["limit_bytes"], 7'741'678'551U);  // 7,741,678,551.04
  EXPECT_EQ(json["rows"][0]["peak_allocated_bytes"], 536'870'912U);
}

}  // namespace
}  // namespace vramlab
