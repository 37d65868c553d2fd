// Who is called best: only what finished, in every kind, and what a verdict says where nothing did.
#include "lab/best.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/experiment.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/matrix/family_matrix.hpp"
#include "lab/matrix/tuner_matrix.hpp"
#include "tests/lab/scenario_rig.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::unique_ptr<Experiment> run(const std::string& text, const std::vector<std::string>& labels = {}) {
  auto experiment =
      read_experiment(parse_document(text, VRAMLAB_SOURCE_DIR "/scenarios/example.json"), {.report = true});
  experiment->run(labels);
  return experiment;
}

LabelledFigures figures(const std::string& label, double finished, double rate) {
  return {label, {{"finished", finished}, {"rate", rate}}};
}

const BestRule kRule{"Best of those that arrived: the fastest.", "None arrived"};

TEST(Best, IsTheFirstInRankOfThoseThatFinished) {
  const std::vector<Standing> standings{
      {"fast", "lost its way", {-9}, ""}, {"slow", "", {-1}, ", 1 m/s"}, {"odd", "", {std::nan("")}, ""}};
  EXPECT_EQ(verdict_of(standings, kRule), "Best: slow, 1 m/s.");
  EXPECT_EQ(verdict_of({standings.front()}, kRule), "None arrived. Least bad: fast, lost its way.");
  EXPECT_EQ(verdict_of({}, kRule), "None arrived.");
}

TEST(Best, OfAColumnIsAFigureOfOneThatFinished) {
  const MetricDescription rate{"rate", "rate", "1/s", Better::more, "how fast"};
  const std::vector<LabelledFigures> results{figures("oracle", 1, 99), figures("dead", 0, 9),
                                             figures("a", 1, 5), figures("b", 1, 5), figures("c", 1, 4)};
  EXPECT_THAT(best_in(results, rate), ElementsAre(2, 3));
  EXPECT_THAT(best_in({figures("dead", 0, 9), figures("half of the seeds", 0.5, 9)}, rate), IsEmpty());
  EXPECT_THAT(best_in(results, {"rate", "rate", "1/s", Better::neither, "how fast"}), IsEmpty());
}

// Ten steps in a row at batch 40 of at most 11 that fit: nothing trained.
TEST(Best, ATrainingRunThatEndedEarlyIsNot) {
  const auto experiment = run(bent_scenario("\"batch\": 8", "\"batch\": 40"), {"fixed"});
  EXPECT_THAT(experiment->verdict(),
              StartsWith("No policy came to the end of its run. Least bad: fixed, ended "
                         "at iteration 10 of 100"));
  EXPECT_THAT(experiment->tables().front().format(TableFormat::csv),
              HasSubstr(",ended at iteration 10 of 100\n"));
  EXPECT_THAT(experiment->head().at(1), StartsWith("Best of those whose run came to its end"));
  const Json json = experiment->json();
  EXPECT_EQ(json["best"], nullptr);
  EXPECT_EQ(json["policies"][0]["finished"], false);
  EXPECT_EQ(json["policies"][0]["lost"], "ended at iteration 10 of 100");
  for (const Json& policy : experiment->sections().front()["policies"]) {
    EXPECT_EQ(policy["best_in"], Json::array()) << policy["label"];
  }
}

// `fixed` never changes anything in the ten steps it lives, and that proves nothing.
TEST(Best, ACheckOfARunThatEndedEarlyFails) {
  const auto checked = [](const std::string& metric) {
    const std::string text = bent_scenario("\"batch\": 8", "\"batch\": 40");
    const std::string from = "\"metric\": \"ooms\", \"equals\": 0";
    std::string bent = text;
    bent.replace(text.find(from), from.size(), "\"metric\": \"" + metric + "\", \"equals\": 0");
    return check_expectations(read_seeds(parse_document(bent, "ended.json")));
  };
  const auto vacuous = checked("adjustments");
  ASSERT_EQ(vacuous.size(), 2u);
  EXPECT_TRUE(vacuous[0].ok);
  EXPECT_FALSE(vacuous[1].ok);
  EXPECT_EQ(vacuous[1].policy + ' ' + vacuous[1].metric, "fixed finished");
  EXPECT_THAT(vacuous[1].around.front(), HasSubstr("10 steps in a row ran out of memory at batch 40"));
  const auto expected = checked("finished");
  ASSERT_EQ(expected.size(), 1u);
  EXPECT_TRUE(expected[0].ok);
}

// Three of five jobs never fit, the others take longer than the one policy allows. Progress is 0, 0, 0, 1, 1:
// Jain's index (1 + 1)² / (5 · 2).
TEST(Best, AQueueThatRefusedJobsIsNot) {
  const auto experiment = run(R"({"version": 1, "kind": "jobs", "name": "fair",
      "cards": [{"total": "24GiB", "context": 0}],
      "jobs": [{"need": "30GiB", "duration_s": 60, "count": 3}, {"need": "10GiB", "duration_s": 600, "count": 2}],
      "policies": [{"use": "job-queue", "job_timeout_s": 300, "wait_timeout_s": 0, "label": "short"},
                   {"use": "job-queue", "wait_timeout_s": 0, "label": "no limit"}]})");
  EXPECT_THAT(experiment->verdict(),
              StartsWith("No policy completed every job. Least bad: no limit, 3 refused ("));
  EXPECT_THAT(experiment->verdict(), HasSubstr("most often (3 of 3) as "));
  EXPECT_THAT(experiment->verdict(), HasSubstr("2 of 5 jobs completed"));
  const Json json = experiment->json();
  EXPECT_EQ(json["best"], nullptr);
  EXPECT_EQ(json["policies"][0]["metrics"]["fairness"], nullptr);
  EXPECT_EQ(json["policies"][1]["metrics"]["fairness"], 0.4);
  EXPECT_EQ(json["policies"][1]["metrics"]["mean_wait_s"], 0);
}

std::string search(const std::string& policies) {
  return R"({"version": 1, "kind": "search", "name": "example",
    "device": {"total": "16GiB", "context": 0, "limit": "8000MiB"},
    "workload": {"model": {"kind": "linear", "fixed": "500MiB", "per_sample": "300MiB",
                           "parameters": {"batch": [1, 4096]}, "step_time": {"floor_ms": 100}}},
    "policies": [)" +
         policies + "]}";
}

// 25 samples fill the card: 500 + 25 · 300 of 8,000 MiB. A margin of 1 % is below the weights.
TEST(Best, ASearcherThatFoundNothingIsNot) {
  const std::string whole = R"({"use": "binsearch", "safety_margin": 1, "reduction": 1, "label": "whole"})";
  const std::string none = R"({"use": "binsearch", "safety_margin": 0.01, "label": "none"})";
  const auto found = run(search(whole + "," + none));
  EXPECT_THAT(found->verdict(), StartsWith("Best: whole, batch 25 of at most 25"));
  EXPECT_EQ(found->json()["policies"][1]["lost"], "found none");
  EXPECT_EQ(found->sections().front()["results"][1]["best_in"], Json::array());
  EXPECT_EQ(run(search(none))->verdict(),
            "No searcher found a batch within its margin; 25 runs without one.");
  std::string small = search(whole);
  small.replace(small.find("8000MiB"), 7, "600MiB");
  EXPECT_EQ(run(small)->verdict(), "No searcher found a batch that fits.");
}

// It answers 162 of at most 179, and the tenth failure in a row is step 18. That these are fewer failures
// than in an epoch that went on is no merit.
TEST(Best, ASearcherWhoseEpochDiedIsNot) {
  const std::filesystem::path file = VRAMLAB_SOURCE_DIR "/../shared/cases/search/s15-died.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  const auto experiment = read_experiment(read_document(file.string()));
  experiment->run({"binsearch repaired"});
  EXPECT_THAT(
      experiment->verdict(),
      StartsWith("No searcher found a batch that survives the epoch. Least bad: binsearch repaired, its "
                 "epoch died at step 18 of 300"));
  EXPECT_EQ(experiment->json()["best"], nullptr);
}

// Samples of 2,000 MiB run on no card of 1 GiB; a batch that holds one takes others down with it.
TEST(Best, AnEpochMayLeaveOutOnlyWhatFitsNowhere) {
  const auto experiment = run(R"({"version": 1, "kind": "epoch", "name": "example",
    "device": {"total": "1GiB", "context": 0},
    "workload": {"sizes": {"per_token": "1MiB"},
                 "data": {"samples": 40, "tasks": [{"name": "T1", "share": 90, "shortest": 100, "longest": 100},
                                                   {"name": "T2", "share": 10, "shortest": 2000, "longest": 2000}]},
                 "target_batch": 8},
    "policies": [{"use": "planned-batches", "profile": "fixed", "batch_size": 1, "label": "one"},
                 {"use": "planned-batches", "profile": "fixed", "batch_size": 4, "label": "four"}]})");
  EXPECT_THAT(experiment->verdict(), StartsWith("Best: one, "));
  const Json json = experiment->json();
  EXPECT_EQ(json["policies"][0]["metrics"]["misfits"], 5);
  EXPECT_EQ(json["policies"][0]["metrics"]["untrained_samples"], 5);
  EXPECT_EQ(json["policies"][1]["finished"], false);
  EXPECT_EQ(json["policies"][1]["lost"], "11 samples left out");
}

// A row in which nobody finished has no best one; else those of the best rank, and no others.
TEST(Best, OfARowOfTheMatrixFollowsTheSameRule) {
  const auto cell = [](double regret, double ooms, bool ended) {
    MatrixCell one;
    one.mean_regret = regret;
    one.ooms = ooms;
    one.ended_early = ended;
    one.finished = !ended;
    one.inside_target = 1;
    return one;
  };
  MatrixRow row;
  row.cells = {cell(-0.5, 0, true), cell(0.1, 0, false), cell(0.05, 2, false), cell(0.1, 0, false)};
  const auto best_rows = [&] {
    std::vector<std::int64_t> counts;
    for (const MatrixSummary& one : summarise({row}, {"ended", "a", "failing", "b"})) {
      counts.push_back(one.best_rows);
    }
    return counts;
  };
  EXPECT_THAT(best_rows(), ElementsAre(0, 1, 0, 1));
  for (MatrixCell& one : row.cells) one.finished = false;
  EXPECT_THAT(best_rows(), ElementsAre(0, 0, 0, 0));
}

// Rows of 100 MiB on 1 GiB. A plan of 16 samples fails; a sampler learns what a row takes.
TEST(FamilyMatrix, RunsEveryComposerOnAnEpochAndNamesTheBestOfItsRow) {
  const ScenarioDocument document = parse_document(R"({
    "version": 1, "kind": "epoch", "name": "rows", "device": {"total": "1GiB", "context": 0},
    "workload": {"sizes": {"per_token": "1MiB"},
                 "data": {"samples": 40, "tasks": [{"name": "T1", "shortest": 100, "longest": 100}]}},
    "policies": [{"use": "planned-batches", "profile": "fixed", "batch_size": 4, "label": "four"}]})",
                                                   VRAMLAB_SOURCE_DIR "/scenarios/rows.json");
  const FamilyMatrix matrix = family_matrix("epoch", {document}, 1);
  EXPECT_EQ(matrix.metric, "samples_per_s");
  EXPECT_THAT(matrix.labels, testing::Contains("dense"));
  ASSERT_EQ(matrix.rows.size(), 1u);
  const auto cell = [&](const char* label) {
    const auto at = std::ranges::find(matrix.labels, label) - matrix.labels.begin();
    return matrix.rows[0].cells.at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(cell("fixed").ooms, 0);  // its own options stay: 4 samples at once, not 16
  EXPECT_NEAR(cell("fixed").value, 80, 1);
  EXPECT_GT(cell("fixed").short_of_best.value(), 0);
  EXPECT_GT(cell("longest-first").ooms, 0);
  EXPECT_FALSE(cell("longest-first").lost.empty());
  EXPECT_FALSE(cell("longest-first").is_best);
  EXPECT_FALSE(cell("longest-first").short_of_best);
  const auto summaries = summarise(matrix);
  const auto standings = standings_of(matrix, summaries);
  const Standing* first = leader(standings);
  const FamilyCell best = cell(first->label.c_str());
  EXPECT_TRUE(best.is_best);
  EXPECT_EQ(best.ooms, 0);
  EXPECT_TRUE(best.lost.empty());
}

TEST(FamilyMatrix, IsThereForEveryKindWithAFamilyButTuners) {
  EXPECT_TRUE(has_family_matrix("epoch") && has_family_matrix("search") && has_family_matrix("jobs"));
  const auto searchers = contestants_of(builtin_policies()->searchers, *builtin_policies(), true);
  EXPECT_THAT(searchers, testing::Contains(testing::Field(&Contestant::label, "binsearch repaired")));
  EXPECT_THAT(searchers, testing::Contains(testing::Field(&Contestant::label, "model")));
  EXPECT_FALSE(has_family_matrix("training") || has_family_matrix("snapshot"));
}

}  // namespace
}  // namespace vramlab
