// Faults as a scenario declares them, and what the lab makes of them.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/matrix/tuner_matrix.hpp"
#include "tests/lab/scenario_rig.hpp"

namespace vramlab {
namespace {

TrainingScenario with_faults(const std::string& faults) {
  return read_training(parse_document(
      bent_scenario("\"policies\":", "\"faults\": " + faults + ", \"policies\":"), "small.json"));
}

double metric_of(const Comparison& comparison, const std::string& label, const char* name) {
  return find_metric(comparison.find(label)->metrics, name).value();
}

TEST(FaultsScenario, EveryKeyIsRead) {
  const Faults faults = with_faults(R"({
      "leak": {"bytes_per_step": "1MiB", "from": 2, "to": 9}, "search": {"bytes": "2MiB"},
      "optimizer_state": {"bytes": "3MiB"}, "outliers": {"bytes": "4MiB", "chance": 0.25},
      "errors": {"chance": 0.5}, "apply_delay": 6, "readings": {"delay": 7, "missing": 0.75},
      "restart": {"after": 10, "checkpoint_every": 5, "takes_s": 1.5}})")
                            .setup.faults;
  const Faults expected{.seed = 1,
                        .leak = {1_MiB, 2, 9},
                        .search = 2_MiB,
                        .optimizer_state = 3_MiB,
                        .outlier = 4_MiB,
                        .outlier_chance = 0.25,
                        .error_chance = 0.5,
                        .apply_delay = 6,
                        .reading_delay = 7,
                        .missing_readings = 0.75,
                        .restart = {10, 5, SimTime{1'500'000'000}}};
  EXPECT_EQ(faults, expected);
}

TEST(FaultsScenario, MistakesAreNamedWithTheirPlace) {
  const auto problem_of = [](const std::string& faults) -> std::string {
    try {
      with_faults(faults);
    } catch (const InputError& error) {
      return error.problems().front().where + " " + error.problems().front().what;
    }
    return {};
  };
  EXPECT_NE(problem_of(R"({"leek": {}})").find("/faults/leek"), std::string::npos);
  EXPECT_NE(problem_of(R"({"leak": {}})").find("/faults/leak"), std::string::npos);
  EXPECT_NE(problem_of(R"({"errors": {"chance": 1.5}})").find("/faults/errors/chance"), std::string::npos);
  EXPECT_NE(problem_of(R"({"leak": {"bytes_per_step": 1, "from": 9, "to": 2}})").find("/faults/leak"),
            std::string::npos);
}

// 100 steps of 100 ms; every tenth is followed by a validation of 100 ms, so a tenth of the rate is lost.
TEST(FaultsScenario, TheCostOfADisturbanceIsWorkNotDone) {
  const Comparison comparison = compare_policies(read_training(parse_document(
      bent_scenario("\"iterations\": 100",
                    "\"phases\": [{\"name\": \"validation\", \"every\": 10}], \"iterations\": 100"),
      "small.json")));
  EXPECT_NEAR(metric_of(comparison, "fixed", "disturbance_cost"), 1 - 1 / 1.1, 1e-3);
  EXPECT_NEAR(metric_of(comparison, "fixed", "phase_time_share"), 0.1 / 1.1, 1e-3);
}

TEST(FaultsScenario, AnUndisturbedRunHasNoSuchCost) {
  const Comparison comparison =
      compare_policies(read_training(parse_document(bent_scenario(), "small.json")));
  EXPECT_FALSE(find_metric(comparison.find("fixed")->metrics, "disturbance_cost"));
}

TEST(FaultsScenario, WorkOfAnErrorAndOfARestartIsLost) {
  Comparison comparison = compare_policies(with_faults(R"({"errors": {"chance": 1}})"), {"fixed"});
  EXPECT_EQ(metric_of(comparison, "fixed", "errors"), 100);
  EXPECT_EQ(metric_of(comparison, "fixed", "objective"), 0);
  comparison =
      compare_policies(with_faults(R"({"restart": {"after": 57, "checkpoint_every": 10}})"), {"fixed"});
  EXPECT_EQ(metric_of(comparison, "fixed", "lost_iterations"), 7);
  EXPECT_EQ(metric_of(comparison, "fixed", "iterations"), 107);
}

// 1000 + 9 · 810 MiB of 10,000; with 8 MiB a step leaked, 800 in all, 8 samples are the most within 0.90.
TEST(FaultsScenario, TheOracleLeavesRoomForALeak) {
  const auto oracle = find_oracle(with_faults(R"({"leak": {"bytes_per_step": "8MiB"}})"));
  ASSERT_TRUE(oracle);
  EXPECT_EQ(oracle->run.final_point, Point{8});
}

// The search comes before anything has leaked: 8280 MiB then, 7480 + 99 · 8 in the last step, both within
// 0.90.
TEST(FaultsScenario, TheOracleLeavesNoRoomForFaultsThatNeverMeet) {
  const TrainingScenario scenario =
      with_faults(R"({"search": {"bytes": "800MiB"}, "leak": {"bytes_per_step": "8MiB"}})");
  const auto oracle = find_oracle(scenario);
  ASSERT_TRUE(oracle);
  EXPECT_EQ(oracle->run.final_point, Point{8});
  EXPECT_LE(metric_of(compare_policies(scenario), "fixed", "regret"), 0);
}

// A process that dies loses its leak with it: 7480 + 59 · 20 MiB at most instead of 7480 + 99 · 20.
TEST(FaultsScenario, TheOracleLeavesRoomForTheLeakOfTheLongestProcess) {
  const auto oracle = find_oracle(with_faults(
      R"({"leak": {"bytes_per_step": "20MiB"}, "restart": {"after": 60, "checkpoint_every": 10}})"));
  ASSERT_TRUE(oracle);
  EXPECT_EQ(oracle->run.final_point, Point{8});
}

// The validation takes 8290 MiB and searches nothing.
TEST(FaultsScenario, TheOracleExpectsNoFaultsOfAValidation) {
  const std::string search = "\"faults\": {\"search\": {\"bytes\": \"800MiB\"}}, \"policies\":";
  const auto oracle_with = [&](const std::string& phase) {
    return find_oracle(read_training(parse_document(
        bent_scenario("}\n  },\n  \"policies\":", "}, \"phases\": [" + phase + "]},\n" + search),
        "small.json")));
  };
  const auto oracle = oracle_with(R"({"name": "validation", "every": 10, "set": {"batch": 9}})");
  ASSERT_TRUE(oracle);
  EXPECT_EQ(oracle->run.final_point, Point{8});
  EXPECT_FALSE(oracle_with(R"({"name": "validation", "every": 10, "set": {"batch": 10}})"));  // 9100 MiB
  EXPECT_TRUE(oracle_with(R"({"name": "validation", "every": 101, "set": {"batch": 10}})"));  // never runs
}

TEST(TunerMatrix, HasSevenTunersWithTheScenariosOwnOptions) {
  const TrainingScenario scenario =
      with_matrix_tuners(read_training(parse_document(bent_scenario(), "small.json")));
  ASSERT_EQ(scenario.policies.size(), 7u);
  EXPECT_EQ(matrix_labels().back(), "predictive");
  const OptionEntry* step = scenario.policies[1].choice.options.find("step");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->value, OptionValue{std::int64_t{2}});
}

// A tuner that is added to the registry is in the matrix without a list of its own.
TEST(TunerMatrix, HasWhateverTunersAreBuiltIn) {
  PolicySet known = *builtin_policies();
  known.tuners.add(known.tuners.entries.front());
  known.tuners.entries.back().name = "newcomer";
  known.tuners.add(builtin_policies()->tuners.find("dual-optimizer"));
  known.tuners.entries.back().name = "rival";
  const std::vector<std::string> expected{"fixed",       "threshold-step", "aimd",         "blind",
                                          "peak",        "settled",        "predictive",   "newcomer",
                                          "rival blind", "rival peak",     "rival settled"};
  EXPECT_EQ(matrix_labels(known), expected);
}

TEST(TunerMatrix, IsTheSameOnAnyNumberOfThreads) {
  const TrainingScenario scenario = with_faults(R"({"errors": {"chance": 0.1}})");
  const std::vector<MatrixTask> tasks{{&scenario, nullptr}};
  const auto one = tuner_matrix(tasks, 3, 1);
  const auto two = tuner_matrix(tasks, 3, 2);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].seeds, 3);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(one[0].cells[i].mean_regret, two[0].cells[i].mean_regret);
    EXPECT_EQ(one[0].cells[i].ooms, two[0].cells[i].ooms);
  }
}

TEST(TunerMatrix, RunsOnceWhereNothingIsRandom) {
  const TrainingScenario scenario = read_training(parse_document(bent_scenario(), "small.json"));
  EXPECT_EQ(tuner_matrix({{&scenario, nullptr}}, 5, 1)[0].seeds, 1);
}

// The bent scenario's rule turns at every look; predictive goes to 9, the best fixed choice.
TEST(TunerMatrix, ASummaryIsThatOfItsRows) {
  const TrainingScenario scenario = read_training(parse_document(bent_scenario(), "small.json"));
  const auto summaries = summarise(tuner_matrix({{&scenario, nullptr}}, 1, 1));
  EXPECT_EQ(summaries[1].worst_turns, 9);
  EXPECT_EQ(summaries[6].label, "predictive");
  EXPECT_EQ(summaries[6].rows_with_ooms, 0);
  EXPECT_LT(summaries[6].median_regret.value(), 0.01);
}

TEST(TunerMatrix, RefusesAPluginsTunerWithTheNameOfAColumn) {
  PolicySet known = *builtin_policies();
  known.tuners.add(known.tuners.entries.front());
  known.tuners.entries.back().name = "peak";
  known.plugins.push_back({"mine.so", "mine", "1", {"peak"}});
  EXPECT_THROW(matrix_labels(known), InputError);
}

// The leak leaves no batch that would have been safe to the end: nothing was lost against it.
TEST(TunerMatrix, ThereIsNoRegretWhereNothingIsSafe) {
  const TrainingScenario scenario = with_faults(R"({"leak": {"bytes_per_step": "200MiB"}})");
  const auto rows = tuner_matrix({{&scenario, nullptr}}, 1, 1);
  EXPECT_FALSE(rows[0].cells[0].mean_regret);
  EXPECT_FALSE(summarise(rows)[0].median_regret);
  EXPECT_FALSE(summarise(rows)[0].worst_regret);
}

// A validation that needs 0.90 of the card and finds no room in a cache full of training's blocks.
TEST(Phases, OnceToldOfAFailedValidationTunersMakeRoom) {
  const std::filesystem::path file = VRAMLAB_SOURCE_DIR "/../shared/cases/training/validation-fails.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  const TrainingScenario scenario = read_training(read_document(file));
  for (const PolicyEntry& entry : scenario.policies) {
    EXPECT_LE(*find_metric(run_policy(scenario, entry).metrics, "phase_ooms"), 2) << entry.label;
  }
}

// Twelve outliers or so that no pair has room for: each costs a step and a while at a smaller pair.
TEST(Faults, OutliersThatFailCostLittleOfALongRun) {
  TrainingScenario scenario =
      read_training(read_document(VRAMLAB_SOURCE_DIR "/scenarios/fault-outliers.json"));
  scenario.setup.iterations = 4000;
  scenario.setup.faults.outlier = 8_GiB;
  scenario.setup.faults.outlier_chance = 0.003;
  TrainingScenario calm = scenario;
  calm.setup.faults = {};
  for (const PolicyEntry& entry : scenario.policies) {
    if (entry.label != "predictive" && entry.label != "settled") continue;
    const double with = *find_metric(run_policy(scenario, entry).metrics, "objective");
    const double without = *find_metric(run_policy(calm, entry).metrics, "objective");
    EXPECT_GT(with, 0.9 * without) << entry.label;
  }
}

}  // namespace
}  // namespace vramlab
