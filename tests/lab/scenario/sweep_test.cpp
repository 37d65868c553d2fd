#include "lab/scenario/sweep.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/scenario/sweep_results.hpp"
#include "report/output_file.hpp"
#include "tests/cli/scratch_folder.hpp"
#include "tests/lab/scenario_rig.hpp"

namespace vramlab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ScenarioDocument document_with(const std::string& sweep) {
  return parse_document(bent_scenario("\"expect\":", "\"sweep\": " + sweep + ", \"expect\":"), "small.json");
}

std::string problem_of(const std::string& sweep) {
  try {
    read_sweep(document_with(sweep));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string problem_of(const Sweep& sweep, SweepResults& results) {
  try {
    run_sweep(sweep, {}, results);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const char* const kTwoAxes = R"([{"vary": "/device/total", "name": "card", "over": ["8000MiB", "10000MiB"]},
                                 {"vary": "/policies/rule/step", "from": 1, "to": 3}])";

TEST(Sweep, IsEveryCombinationTheLastAxisFastest) {
  const Sweep sweep = read_sweep(document_with(kTwoAxes));
  ASSERT_EQ(sweep.runs.size(), 6u);
  EXPECT_EQ(sweep.axes[0].name, "card");
  EXPECT_EQ(sweep.axes[1].name, "step");
  EXPECT_EQ(sweep.point_text(sweep.runs[0]), "card 8000MiB, step 1");
  EXPECT_EQ(sweep.point_text(sweep.runs[1]), "card 8000MiB, step 2");
  EXPECT_EQ(sweep.point_text(sweep.runs[5]), "card 10000MiB, step 3");
  const Json last = sweep.runs[5].scenario.json;
  EXPECT_EQ(last["device"]["total"], "10000MiB");
  EXPECT_EQ(last["policies"][1]["step"], 3);
  EXPECT_FALSE(last.contains("sweep"));
}

TEST(Sweep, StepsOfDecimalsAreTheDecimalsPeopleMean) {
  const Sweep sweep =
      read_sweep(document_with(R"([{"vary": "/target/usage", "from": 0.7, "to": 0.9, "step": 0.05}])"));
  ASSERT_EQ(sweep.axes[0].values.size(), 5u);
  EXPECT_EQ(sweep.axes[0].values[3].dump(), "0.85");
}

TEST(Sweep, SaysWhatIsWrongWithAnAxis) {
  EXPECT_THAT(problem_of(R"([{"vary": "/devise/limit", "over": [1]}])"), HasSubstr("device"));
  EXPECT_THAT(problem_of(R"([{"vary": "/policies/rul/step", "over": [1]}])"), HasSubstr("rule"));
  EXPECT_THAT(problem_of(R"([{"vary": "/seed"}])"), HasSubstr("/sweep/0"));
  EXPECT_THAT(problem_of(R"([{"vary": "/seed", "over": []}])"), HasSubstr("list of values"));
  EXPECT_THAT(problem_of(R"([{"vary": "/seed", "from": 3, "to": 1}])"), HasSubstr("below"));
  EXPECT_THAT(problem_of(R"([{"vary": "/seed", "over": [1]}, {"vary": "/seed", "over": [2]}])"),
              HasSubstr("/seed is varied already"));
  EXPECT_THAT(problem_of(R"([{"vary": "/seed", "over": [1]},
                             {"vary": "/target/usage", "name": "seed", "over": [0.8]}])"),
              HasSubstr("taken"));
  EXPECT_THAT(problem_of(R"([{"vary": "/seed", "over": [1, 2, 1]}])"), HasSubstr("1 stands there twice"));
  EXPECT_THAT(problem_of(R"([{"vary": "/seed", "over": [1], "to": 3}])"), HasSubstr("go with \"from\""));
  EXPECT_THAT(problem_of(R"([{"vary": "/seed", "over": 1}])"), HasSubstr("needed is a list of values"));
  EXPECT_THAT(
      problem_of(
          R"([{"vary": "/seed", "from": 1, "to": 9999}, {"vary": "/device/context", "from": 1, "to": 99}])"),
      HasSubstr("100000"));
  EXPECT_THAT(problem_of("[]"), HasSubstr("empty"));
}

TEST(Sweep, ABadCombinationIsNamedBeforeAnythingRuns) {
  const Sweep sweep = read_sweep(document_with(R"([{"vary": "/policies/rule/step", "over": [2, "two"]}])"));
  SweepResults results(sweep.runs.size());
  EXPECT_THAT(problem_of(sweep, results), HasSubstr("(at step two)"));
  EXPECT_FALSE(results[0]);
}

// What stands in the place of the device has no total.
TEST(Sweep, AValueThatTakesAwayThePlaceOfAnotherIsNamed) {
  EXPECT_THAT(
      problem_of(R"([{"vary": "/device", "over": ["H100"]}, {"vary": "/device/total", "over": [1]}])"),
      AllOf(HasSubstr("small.json: /sweep/1/vary"), HasSubstr("(at device H100, total 1)")));
}

// The resident 20 MiB do not fit under 10 MiB, which only the run finds out.
TEST(Sweep, ARunThatCannotBeMadeIsNamedAndLosesNoOther) {
  const Sweep sweep =
      read_sweep(document_with(R"([{"vary": "/device/limit", "over": ["10MiB", "9000MiB"]}])"));
  SweepResults results(sweep.runs.size());
  EXPECT_THAT(problem_of(sweep, results), HasSubstr("(at limit 10MiB)"));
  EXPECT_FALSE(results[0]);
  EXPECT_TRUE(results[1]);
}

class SweepFiles : public testing::TestWithParam<std::string> {
 protected:
  ScratchFolder folder;
  Sweep sweep = read_sweep(document_with(kTwoAxes));
  std::vector<std::string> keys = sweep_keys(sweep, {}, "1");
  std::string file = folder.file("results" + GetParam());

  std::string text(unsigned threads) {
    SweepResults results(sweep.runs.size());
    run_sweep(sweep, {.threads = threads}, results);
    return sweep_text(sweep, results, keys, file);
  }
};

TEST_P(SweepFiles, AreEqualAtAnyNumberOfThreads) { EXPECT_EQ(text(1), text(4)); }

TEST_P(SweepFiles, AreGoneOnWithAsIfNothingHadStopped) {
  const std::string whole = text(1);
  SweepResults half(sweep.runs.size());
  std::atomic<bool> stop{false};
  int runs = 0;
  run_sweep(sweep, {.stop = &stop, .on_run = [&](auto, const auto&) { stop = ++runs == 3; }}, half);
  EXPECT_EQ(runs, 3);
  std::ofstream{file} << sweep_text(sweep, half, keys, file);
  SweepResults again = read_sweep_results(sweep, keys, file);
  EXPECT_TRUE(again[2] && !again[3]);
  runs = 0;
  run_sweep(sweep, {.on_run = [&](auto, const auto&) { ++runs; }}, again);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(sweep_text(sweep, again, keys, file), whole);
}

TEST_P(SweepFiles, OfAnotherSweepAreNotOverwritten) {
  std::ofstream{file} << text(1);
  EXPECT_THROW(read_sweep_results(sweep, sweep_keys(sweep, {}, "2"), file), InputError);  // another version
}

TEST_P(SweepFiles, AreReadWithoutTheRunsOfWhichRowsAreMissing) {
  const std::string whole = text(1);
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  std::ofstream{file} << whole.substr(0, last);
  const SweepResults results = read_sweep_results(sweep, keys, file);
  EXPECT_TRUE(results[4]);
  EXPECT_FALSE(results[5]);
}

// What a program that was killed in the middle of a row has left: the row goes, its run is made again.
TEST(SweepResults, ARowThatWasCutOffIsNone) {
  const ScratchFolder folder;
  const std::string file = folder.file("all.jsonl");
  const Sweep sweep = read_sweep(document_with(kTwoAxes));
  const auto keys = sweep_keys(sweep, {}, "1");
  SweepResults results(sweep.runs.size());
  run_sweep(sweep, {}, results);
  const std::string whole = sweep_text(sweep, results, keys, file);
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (const std::size_t size : {last + 1, last + 5, last + 30, whole.size() - 1}) {
    std::ofstream{file} << whole.substr(0, size);
    EXPECT_EQ(finished_runs(read_sweep_results(sweep, keys, file)), 5u) << size;
    GrowingFile{file}.append(run_lines(sweep, keys, 5, *results[5]));
    EXPECT_EQ(finished_runs(read_sweep_results(sweep, keys, file)), 6u) << size;
  }
}

TEST(SweepShard, PartsHaveEveryRunOnce) {
  for (std::size_t runs : {1u, 6u, 7u, 12u}) {
    std::size_t counted = 0;
    for (std::size_t part = 1; part <= 5; ++part) {
      const SweepShard shard = parse_shard(std::to_string(part) + "/5");
      std::size_t mine = 0;
      for (std::size_t i = 0; i < runs; ++i) mine += shard.has(i) ? 1u : 0u;
      EXPECT_EQ(shard.count(runs), mine);
      counted += mine;
    }
    EXPECT_EQ(counted, runs);
  }
  for (const char* wrong : {"", "3", "0/2", "3/2", "1/", "/2", "1/2/3", "a/b", "-1/2", "1/0"}) {
    EXPECT_THROW(parse_shard(wrong), InputError) << wrong;
  }
}

TEST_P(SweepFiles, AreRefusedWhenDamaged) {
  const std::string whole = text(1);
  const auto refusal = [&](const std::string& damaged) {
    std::ofstream{file} << damaged;
    try {
      read_sweep_results(sweep, keys, file);
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  const bool is_csv = GetParam() == ".csv";
  EXPECT_THAT(refusal(whole + "mine"), HasSubstr("is cut off in its last line"));
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 3)),
              is_csv ? HasSubstr("is cut off in its last line") : HasSubstr(""));
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  EXPECT_EQ(refusal(whole + whole.substr(last)), "");  // a run that was cut off and made again
  std::string other = whole.substr(last);
  char& digit = other[other.find_last_of("0123456789")];
  digit = digit == '1' ? '2' : '1';
  EXPECT_THAT(refusal(whole + other), HasSubstr("the file has oracle of this run twice, with other figures"));
  std::string letter = whole;
  EXPECT_THAT(refusal(letter.replace(letter.find("regret"), 6, "regert")),
              HasSubstr("there is no metric \"regert\". Did you mean \"regret\"?"));
}

INSTANTIATE_TEST_SUITE_P(Forms, SweepFiles, testing::Values(".jsonl", ".csv"),
                         [](const auto& one) { return one.param.substr(1); });

// Who edits the table may have moved its columns.
TEST(SweepResults, ColumnsOfMetricsMayStandInAnyOrder) {
  const ScratchFolder folder;
  const Sweep sweep = read_sweep(document_with(R"([{"vary": "/seed", "over": [1]}])"));
  const auto keys = sweep_keys(sweep, {}, "1");
  const std::string file = folder.file("results.csv");
  std::ofstream{file} << "key,seed,policy,run_rows,regret,ooms\n" << keys[0] << ",1,fixed,1,0.25,7\n";
  const SweepResults results = read_sweep_results(sweep, keys, file);
  ASSERT_TRUE(results[0]);
  EXPECT_EQ(find_metric(results[0]->front().metrics, "ooms"), 7);
  EXPECT_EQ(find_metric(results[0]->front().metrics, "regret"), 0.25);
}

// A plugin that was built again may decide otherwise.
TEST(SweepKeys, DependOnTheContentOfPlugins) {
  const ScratchFolder folder;
  const std::string file = folder.file("plugin.so");
  PolicySet set = *builtin_policies();
  set.plugins.push_back({file, "mine", "1", {}});
  ScenarioDocument document = document_with(R"([{"vary": "/seed", "over": [1]}])");
  document.policies = std::make_shared<const PolicySet>(set);
  const Sweep sweep = read_sweep(document);
  std::ofstream{file} << "one";
  const auto before = sweep_keys(sweep, {}, "1");
  std::ofstream{file} << "two";
  EXPECT_NE(before, sweep_keys(sweep, {}, "1"));
}

// The same file under the same name may hold something else the next time.
TEST(SweepKeys, DependOnTheContentOfFilesTheScenarioNames) {
  const ScratchFolder folder;
  const ScenarioDocument document = parse_document(
      bent_scenario("\"expect\":",
                    R"("sweep": [{"vary": "/seed", "over": [1]}], "description": "model.json", "expect":)"),
      folder.file("small.json"));
  const Sweep sweep = read_sweep(document);
  std::ofstream{folder.file("model.json")} << "{}";
  const auto before = sweep_keys(sweep, {}, "1");
  std::ofstream{folder.file("model.json")} << "{ }";
  EXPECT_NE(before, sweep_keys(sweep, {}, "1"));
}

}  // namespace
}  // namespace vramlab
