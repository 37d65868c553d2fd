// The program with plugins: the option, the environment, the key of a scenario, and what it says.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "lab/json.hpp"
#include "tests/cli/program_run.hpp"
#include "tests/lab/scenario_rig.hpp"
#include "tests/plugins/loaded.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A scratch folder with small.json, whose second policy is `use`.
class Bench : public ScratchFolder {
 public:
  explicit Bench(const std::string& use, const Json& plugins = {}) {
    Json json = Json::parse(bent_scenario());
    json["policies"][1] = {{"use", use}};
    json["expect"] = Json::array({{{"policy", use}, {"metric", "iterations"}, {"equals", 100}}});
    if (!plugins.is_null()) json["plugins"] = plugins;
    std::ofstream{file("small.json")} << json.dump(2);
  }
};

std::string option(const std::string& name) { return " --plugin '" + test_plugin(name) + "'"; }

TEST(PluginCli, EveryVerbThatNamesPoliciesTakesPlugins) {
  Bench bench{"skeleton-twin"};
  const std::string plugin = option("skeleton_twin");
  EXPECT_THAT(run_program("compare small.json" + plugin, bench).out, HasSubstr("\nskeleton-twin "));
  EXPECT_EQ(run_program("run small.json --policy skeleton-twin" + plugin, bench).code, 0);
  EXPECT_THAT(run_program("check small.json" + plugin, bench).out, HasSubstr("1 passed, 0 failed"));
  EXPECT_THAT(run_program("policies --format csv" + plugin, bench).out,
              HasSubstr("to be copied (plugin skeleton-twin 1.0)"));
  const Ran one = run_program("policies skeleton-twin" + plugin, bench);
  EXPECT_THAT(one.out, StartsWith("skeleton-twin: one step up"));
  EXPECT_THAT(one.out, HasSubstr("highest_usage"));
  EXPECT_THAT(one.out, HasSubstr("from plugin skeleton-twin 1.0"));
  EXPECT_THAT(run_program("schema" + plugin, bench).out, HasSubstr("\"const\": \"skeleton-twin\""));
  EXPECT_THAT(run_program("schema", bench).out, Not(HasSubstr("skeleton-twin")));
}

// The columns of a plugin's tuners stand behind the built-in ones, and a twin's is that of its original.
TEST(PluginCli, AMatrixHasTheTunersOfPlugins) {
  Bench bench{"skeleton"};
  const Ran ran = run_program("matrix small.json --json -" + option("twins"), bench);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json tuners = Json::parse(ran.out)["rows"][0]["tuners"];
  std::vector<std::string> labels;
  for (const auto& [label, figures] : tuners.items()) labels.push_back(label);
  EXPECT_THAT(labels, testing::ElementsAre("fixed", "threshold-step", "aimd", "blind", "peak", "settled",
                                           "predictive", "fixed-twin", "threshold-step-twin", "aimd-twin",
                                           "dual-optimizer-twin", "predictive-twin", "skeleton-twin"));
  for (const char* name : {"fixed", "threshold-step", "aimd", "predictive"}) {
    EXPECT_EQ(tuners[std::string(name) + "-twin"], tuners[name]) << name;
  }
  EXPECT_EQ(tuners["dual-optimizer-twin"], tuners["settled"]);  // its default profile
  EXPECT_NE(tuners["aimd-twin"], tuners["fixed-twin"]);
}

TEST(PluginCli, FindBatchTakesASearcherOfAPlugin) {
  ScratchFolder scratch;
  Json json = read_json_file(VRAMLAB_SOURCE_DIR "/scenarios/find-gpt2.json");
  json.erase("expect");
  json["policies"] = Json::array({{{"use", "binsearch-twin"}}});
  std::ofstream{scratch.file("find.json")} << json.dump();
  const Ran ran = run_program("find-batch find.json" + option("twins"), scratch);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("Batch "));
}

TEST(PluginCli, AScenarioNamesItsPlugins) {
  Bench bench{"skeleton-twin", Json::array({"parts/mine.so"})};
  std::filesystem::create_directory(bench.path() / "parts");
  std::filesystem::copy(test_plugin("skeleton_twin"), bench.path() / "parts" / "mine.so");
  EXPECT_EQ(run_program("check small.json", bench).code, 0);
  // Beside the scenario, wherever the program runs; named again on the command line, it is the same.
  const std::string file = bench.file("small.json");
  EXPECT_EQ(run_program("check '" + file + "'").code, 0);
  EXPECT_EQ(run_program("check '" + file + "' --plugin '" + bench.file("parts/mine.so") + "'").code, 0);
}

TEST(PluginCli, AFolderOfPluginsIsNamedByTheEnvironment) {
  Bench bench{"skeleton-twin"};
  std::filesystem::create_directory(bench.path() / "plugins");
  std::filesystem::copy(test_plugin("skeleton_twin"), bench.path() / "plugins" / "mine.so");
  ::setenv("VRAMLAB_PLUGIN_PATH", (":" + bench.file("plugins")).c_str(), 1);
  const Ran good = run_program("check small.json", bench);
  ::setenv("VRAMLAB_PLUGIN_PATH", bench.file("none").c_str(), 1);
  const Ran bad = run_program("check small.json", bench);
  ::unsetenv("VRAMLAB_PLUGIN_PATH");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("none: is not a folder of plugins: "));
}

TEST(PluginCli, RefusalsAreOneLineAndExitCode2) {
  Bench bench{"fixed"};
  for (const char* name : {"wrong_abi", "wrong_toolchain", "no_symbol", "taken_name"}) {
    const Ran ran = run_program("policies" + option(name), bench);
    EXPECT_EQ(ran.code, 2) << name;
    EXPECT_EQ(ran.err, test_plugin(name) + ": " + refusal(test_plugin(name)) + "\n");
    EXPECT_EQ(ran.out, "");
  }
  Bench names{"skeleton-twin", Json::array({"none.so"})};
  const Ran ran = run_program("compare small.json", names);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("small.json: /plugins/0: the plugin none.so: there is no such plugin."));
  Bench numbers{"fixed", Json::array({7})};
  EXPECT_THAT(run_program("compare small.json", numbers).err, HasSubstr("small.json: /plugins: "));
}

// The others' rows are there, the program's exit code is that of any comparison.
TEST(PluginCli, AFailingPolicyEndsItsRunAndNotTheProgram) {
  Bench bench{"throws"};
  const Ran ran = run_program("compare small.json" + option("hostile"), bench);
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(
      ran.out,
      HasSubstr("throws ended after iteration 3 of 100: the policy throws of a plugin failed: divided "
                "by zero."));
  EXPECT_THAT(ran.out, HasSubstr("\nfixed "));
  EXPECT_EQ(run_program("check small.json" + option("hostile"), bench).code, 1);
}

TEST(PluginCli, AnEndWithoutWordsFailsACheckAndKeepsTheOthers) {
  Bench bench{"ends-without-words"};
  const Ran ran = run_program("compare small.json --json -" + option("hostile"), bench);
  EXPECT_EQ(ran.code, 0);
  const auto policies = Json::parse(ran.out)["policies"];
  EXPECT_EQ(policies[1]["ended_early"], "the policy ended it and gave no reason");
  EXPECT_EQ(policies[0]["metrics"]["finished"], 1);
  EXPECT_EQ(run_program("check small.json" + option("hostile"), bench).code, 1);
}

// In a process of its own it takes nothing else with it.
TEST(PluginCli, WhatWouldEndTheProgramEndsItsOwnRun) {
  for (const auto& [policy, did] :
       {std::pair{"exits", "ended the program with exit code 0"}, std::pair{"aborts", "crashed (Aborted)"},
        std::pair{"crashes", "crashed (Segmentation fault)"},
        std::pair{"never-answers", "took longer than 3 s"}, std::pair{"throws", "failed: divided by zero"}}) {
    Bench bench{policy};
    const std::string isolated = option("hostile") + " --isolate --isolate-limit 3";
    const Ran ran = run_program("compare small.json --json -" + isolated, bench);
    ASSERT_EQ(ran.code, 0) << policy << ran.err;
    const auto policies = Json::parse(ran.out)["policies"];
    EXPECT_EQ(policies[1]["ended_early"], std::string{"the policy "} + policy + " of a plugin " + did);
    EXPECT_EQ(policies[0]["metrics"]["finished"], 1) << policy;
    EXPECT_EQ(run_program("check small.json" + isolated, bench).code, 1) << policy;
  }
  Bench bench{"skeleton-twin"};
  const std::string plugin = option("skeleton_twin");
  EXPECT_EQ(run_program("compare small.json --json - --isolate" + plugin, bench).out,
            run_program("compare small.json --json -" + plugin, bench).out);
  EXPECT_THAT(run_program("compare small.json --isolate --isolate-limit 0" + plugin, bench).err,
              StartsWith("--isolate-limit: 0 is out of range"));
}

// The program counts what a policy keeps, as the tests' own program does.
TEST(PluginCli, EndlessGrowthEndsItsRunWhateverTheThreads) {
  Bench bench{"grows"};
  std::string files;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "small" + std::to_string(i) + ".json";
    std::filesystem::copy_file(bench.file("small.json"), bench.file(name));
    files += name + ' ';
  }
  const auto values = [&](const std::string& threads) {
    const Ran ran = run_program("check " + files + threads + " --json -" + option("hostile"), bench);
    const Json result = Json::parse(ran.out);
    std::vector<double> all;
    for (const Json& scenario : result["scenarios"]) {
      all.push_back(scenario["expectations"][0]["value"].get<double>());
    }
    return all;
  };
  const std::vector<double> sixteen(8, 16);
  EXPECT_EQ(values("-j 1"), sixteen);
  EXPECT_EQ(values("-j 8"), sixteen);
}

}  // namespace
}  // namespace vramlab
