// Scenarios of every kind behind one interface.
#include "lab/experiment.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/lab/scenario_rig.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

ScenarioDocument shipped(const std::string& name) {
  return read_document(VRAMLAB_SOURCE_DIR "/scenarios/" + name);
}

ScenarioDocument one_of(const std::string& kind) {
  if (kind == "training") return parse_document(bent_scenario(), "small.json");
  if (kind == "jobs") return shipped("queue-mixed-day.json");
  if (kind == "epoch") return shipped("epoch-seven-billion.json");
  if (kind == "search") return shipped("find-gpt2.json");
  return shipped("allocator/k1-22-small-first.json");
}

TEST(Experiment, OfAnyKindNamesEveryLabelThatIsNotThere) {
  for (const Kind& kind : kinds()) {
    const auto experiment = read_experiment(one_of(kind.name));
    const std::vector<std::string> labels = experiment->labels();
    ASSERT_FALSE(labels.empty()) << kind.name;
    EXPECT_NO_THROW(experiment->require_labels(labels)) << kind.name;
    try {
      experiment->require_labels({"nobody", labels.front(), "noone"});
      FAIL() << kind.name;
    } catch (const InputError& error) {
      EXPECT_EQ(error.problems().size(), 2u) << kind.name;
      EXPECT_THAT(error.what(), HasSubstr("no " + experiment->labelled() + " is labelled \"nobody\""));
    }
  }
}

// What a kind cannot do is refused with the kinds that can.
TEST(Experiment, AQuestionThatGoesWithOtherKindsIsRefused) {
  const auto refusal = [](const std::string& kind, const Question& question) -> std::string {
    try {
      read_experiment(one_of(kind), question);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(refusal("search", {.picture = "a.svg"}),
              HasSubstr("--picture is for scenarios of kind training and jobs."));
  EXPECT_THAT(refusal("search", {.trace_dir = "a"}),
              HasSubstr("--trace-dir is for scenarios of kind training, jobs and epoch."));
  EXPECT_EQ(refusal("training", {.picture = "a.svg", .trace_dir = "a"}), "none");
}

// The only job never fits: there is no wait, no time to completion and no fairness.
TEST(Experiment, AFigureThatIsNotThereIsADashInTables) {
  const auto experiment = read_experiment(
      parse_document(R"({"version": 1, "kind": "jobs", "name": "never", "cards": [{"total": "10GiB"}],
           "jobs": [{"need": "20GiB", "duration_s": 10}], "policies": [{"use": "job-queue", "label": "queue"}]})",
                     "never.json"));
  experiment->run({});
  EXPECT_EQ(experiment->tables().at(1).format(TableFormat::csv),
            "policy,makespan,wait,p50 wait,p99 wait,done in,p99 done,memory,fair\n"
            "queue,0.0 s,-,-,-,-,-,0.0 %,-\n");
  EXPECT_EQ(experiment->json()["policies"][0]["metrics"]["fairness"], nullptr);
}

TEST(Experiment, FiguresAreThoseOfItsMetrics) {
  const auto experiment = read_experiment(one_of("training"));
  experiment->run({"fixed"});
  const auto figures = experiment->figures();
  ASSERT_EQ(figures.size(), 2u);  // the oracle is found besides
  EXPECT_EQ(figures[0].label, "fixed");
  EXPECT_EQ(find_metric(figures[0].metrics, "iterations"), 100);
  EXPECT_EQ(experiment->value({.name = "iterations"}, "fixed"), 100);
  EXPECT_TRUE(std::isnan(experiment->value({.name = "iterations"}, "rule")));
}

}  // namespace
}  // namespace vramlab
