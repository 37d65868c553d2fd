#include "lab/kinds/training/run.hpp"

#include <chrono>
#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/training/view.hpp"
#include "tests/lab/scenario_rig.hpp"

namespace vramlab {
namespace {

double metric(const Comparison& comparison, const std::string& label, const char* name) {
  return find_metric(comparison.find(label)->metrics, name).value();
}

// Usage 0.10 + 0.081 a sample: 9 (0.829) is the largest batch at or below 0.90.
TEST(Comparison, TheOracleIsTheBestSafeFixedChoice) {
  const Comparison comparison =
      compare_policies(read_training(parse_document(bent_scenario(), "small.json")));
  ASSERT_EQ(comparison.policies.back().label, "oracle");
  EXPECT_EQ(comparison.policies.back().run.final_point, Point{9});
  EXPECT_DOUBLE_EQ(metric(comparison, "oracle", "regret"), 0);
  EXPECT_DOUBLE_EQ(metric(comparison, "oracle", "peak_allocated_ratio"), 0.829);
}

// A step takes 100 ms plus the driver calls of the first one; 8 samples a step against 9.
TEST(Comparison, RegretComparesTheWorkDone) {
  const Comparison comparison =
      compare_policies(read_training(parse_document(bent_scenario(), "small.json")));
  EXPECT_NEAR(metric(comparison, "fixed", "regret"), 1 - 8.0 / 9.0, 1e-4);
  EXPECT_NEAR(metric(comparison, "fixed", "samples_per_s"), 80, 0.02);
}

TEST(Comparison, MetricsOfAFixedRunAreThoseOfItsStep) {
  const Comparison comparison =
      compare_policies(read_training(parse_document(bent_scenario(), "small.json")), {"fixed"});
  EXPECT_EQ(metric(comparison, "fixed", "iterations"), 100);
  EXPECT_EQ(metric(comparison, "fixed", "ooms"), 0);
  EXPECT_DOUBLE_EQ(metric(comparison, "fixed", "peak_allocated_ratio"), 0.748);
  EXPECT_DOUBLE_EQ(metric(comparison, "fixed", "mean_peak_ratio"), 0.748);
  EXPECT_EQ(metric(comparison, "fixed", "min_headroom_bytes"), 2520.0 * 1048576);
  EXPECT_EQ(metric(comparison, "fixed", "adjustments"), 0);
}

PolicyResult fixed_under(const std::string& allocator) {
  Json json = Json::parse(bent_scenario());
  json["allocator"] = Json::parse(allocator);
  const TrainingScenario scenario = read_training(parse_document(json.dump(), "small.json"));
  EXPECT_EQ(scenario.notes.size(), 1u);  // what must be known of that allocator
  return *compare_policies(scenario, {"fixed"}).find("fixed");
}

// 1,000 MiB and 8 samples of 810 are 7,480 of the card's 10,000. Best fit takes its share at once: three
// quarters, into which a batch of 8 just fits (its last 20 MiB are too little to cut, so all counts as
// allocated), or what mem_fraction says; 0.7 is too little for it, and no step succeeds. Neither does one
// where it grows: regions of 1,024, 1,024 and 2,048 MiB and the 3,404 that are left hold seven samples.
TEST(Comparison, AScenarioMayNameItsAllocator) {
  const auto figure = [](const PolicyResult& result, const char* name) {
    return find_metric(result.metrics, name).value();
  };
  for (const char* allocator :
       {R"({"backend": "direct"})", R"({"backend": "fixed-pool"})", R"({"backend": "cudaMallocAsync"})",
        R"({"conf": "backend:cudaMallocAsync"})"}) {
    const PolicyResult result = fixed_under(allocator);
    EXPECT_EQ(figure(result, "ooms"), 0) << allocator;
    EXPECT_NEAR(figure(result, "peak_allocated_ratio"), 0.748, 1e-6) << allocator;
  }
  EXPECT_NEAR(figure(fixed_under(R"({"backend": "direct"})"), "peak_reserved_ratio"), 0.748, 1e-6);
  const PolicyResult best_fit = fixed_under(R"({"backend": "bfc"})");
  EXPECT_EQ(figure(best_fit, "ooms"), 0);
  EXPECT_NEAR(figure(best_fit, "peak_allocated_ratio"), 0.75, 1e-6);
  EXPECT_NEAR(figure(best_fit, "peak_reserved_ratio"), 0.75, 1e-6);
  EXPECT_GT(figure(fixed_under(R"({"backend": "bfc", "preallocate": false})"), "ooms"), 0);
  EXPECT_NEAR(figure(fixed_under(R"({"backend": "bfc", "mem_fraction": 0.9})"), "peak_reserved_ratio"), 0.9,
              1e-6);
  EXPECT_GT(figure(fixed_under(R"({"backend": "bfc", "mem_fraction": 0.7})"), "ooms"), 0);
}

TEST(Comparison, AShareIsOfBestFitOnly) {
  Json json = Json::parse(bent_scenario());
  json["allocator"] = {{"backend", "direct"}, {"mem_fraction", 0.5}};
  EXPECT_THROW(read_training(parse_document(json.dump(), "small.json")), InputError);
}

// Settings are of PyTorch's caching allocator: beside another one they are said to do nothing, and one that
// names a third allocator is refused.
TEST(Comparison, SettingsBesideAnotherAllocatorAreSaidOrRefused) {
  Json json = Json::parse(bent_scenario());
  json["allocator"] = {{"backend", "direct"}, {"conf", "expandable_segments:True"}};
  const TrainingScenario scenario = read_training(parse_document(json.dump(), "small.json"));
  ASSERT_EQ(scenario.notes.size(), 2u);
  EXPECT_TRUE(scenario.notes.back().starts_with("\"expandable_segments:True\" is of PyTorch's"));
  json["allocator"]["conf"] = "backend:cudaMallocAsync";
  EXPECT_THROW(read_training(parse_document(json.dump(), "small.json")), InputError);
}

// The newest known rules hold, and the head says so.
TEST(Comparison, AVersionNewerThanTheRulesIsSaid) {
  Json json = Json::parse(bent_scenario());
  json["allocator"] = {{"torch_version", "3.0"}};
  const TrainingScenario scenario = read_training(parse_document(json.dump(), "small.json"));
  ASSERT_EQ(scenario.notes.size(), 1u);
  EXPECT_TRUE(scenario.notes.front().starts_with("torch 3.0 is newer"));
}

// Without step times only the driver's calls would be counted: no rates, and the mean peak ranks.
TEST(Comparison, AModelThatWasNeverTimedGivesNoRates) {
  Json json = Json::parse(bent_scenario());
  json["objective"] = "samples_per_s";
  json["workload"]["model"]["step_time"] = Json::object();
  const TrainingScenario scenario = read_training(parse_document(json.dump(), "small.json"));
  const Comparison comparison = compare_policies(scenario);
  EXPECT_TRUE(std::isnan(metric(comparison, "fixed", "samples_per_s")));
  EXPECT_TRUE(std::isnan(metric(comparison, "fixed", "oom_time_share")));
  EXPECT_DOUBLE_EQ(metric(comparison, "fixed", "objective"), 0.748);  // its mean peak
  EXPECT_EQ(comparison_json(scenario, comparison, {})["timed"], false);
}

// The rule of hand: 8 ↔ 10 at every look, for ever.
TEST(Comparison, CountsEveryTurnOfAFlipFlop) {
  const Comparison comparison =
      compare_policies(read_training(parse_document(bent_scenario(), "small.json")), {"rule"});
  EXPECT_EQ(metric(comparison, "rule", "adjustments"), 10);
  EXPECT_EQ(metric(comparison, "rule", "direction_changes"), 9);
}

TEST(Comparison, WithoutASafeChoiceThereIsNoOracle) {
  const TrainingScenario scenario = read_training(
      parse_document(bent_scenario("\"fixed\": \"1000MiB\"", "\"fixed\": \"9000MiB\""), "small.json"));
  EXPECT_FALSE(find_oracle(scenario));
  const Comparison comparison = compare_policies(scenario, {"fixed"});
  EXPECT_EQ(comparison.policies.size(), 1u);
  EXPECT_FALSE(find_metric(comparison.policies[0].metrics, "regret"));
}

// Three small steps at first say nothing about the later ones.
TEST(Comparison, TheOracleKnowsThatFirstStepsDiffer) {
  const Comparison comparison = compare_policies(read_training(parse_document(
      bent_scenario("\"resident\": \"20MiB\",",
                    "\"resident\": \"20MiB\", \"first_steps\": [{\"share\": 0.3}, {\"share\": 0.3}, "
                    "{\"share\": 0.3}, {\"share\": 0.3}],"),
      "small.json")));
  EXPECT_EQ(comparison.find("oracle")->run.final_point, Point{9});
}

// By brute force over every point of a small grid.
TEST(Comparison, NoSafeFixedChoiceBeatsTheOracle) {
  TrainingScenario scenario = read_training(read_document(VRAMLAB_SOURCE_DIR "/scenarios/ratchet.json"));
  scenario.setup.iterations = 20;
  scenario.setup.bounds.parameters = {{"batch", 2, 12}, {"lq", 120, 150}};
  const double best = *find_metric(find_oracle(scenario)->metrics, "objective");
  for (std::int64_t batch = 2; batch <= 12; ++batch) {
    for (std::int64_t lq = 120; lq <= 150; lq += 5) {
      scenario.setup.start = {batch, lq};
      const PolicyResult fixed = run_policy(scenario, {"fixed", {.use = "fixed"}});
      const bool safe = *find_metric(fixed.metrics, "ooms") == 0 &&
                        *find_metric(fixed.metrics, "peak_allocated_ratio") <= 0.9;
      EXPECT_TRUE(!safe || *find_metric(fixed.metrics, "objective") <= best) << batch << ", " << lq;
    }
  }
}

// 13,500 MiB may be used, and 1,010 + 12 a sample are: training alone fits to 1,040, a validation of four
// times its batch to 260. That is too far away to be found by full runs that take one sample off. It runs
// once, at the end.
TEST(Comparison, TheOracleMakesRoomForAPhaseAtTheLastStep) {
  Json json = Json::parse(bent_scenario("\"fixed\": \"1000MiB\", \"per_sample\": \"810MiB\"",
                                        "\"fixed\": \"1010MiB\", \"per_sample\": \"12MiB\""));
  json["device"]["total"] = "15000MiB";
  json["workload"]["model"]["parameters"]["batch"] = {2, 2000};
  json["workload"]["iterations"] = 5;
  json["workload"]["phases"] = {{{"name", "validation"}, {"every", 5}, {"follow", {{"batch", 4}}}}};
  const auto oracle = find_oracle(read_training(parse_document(json.dump(), "small.json")));
  ASSERT_TRUE(oracle);
  EXPECT_EQ(oracle->run.final_point, Point{260});
}

/// One tensor of 8 MiB a sample; 1 ms for each and one more. Knows how often it was asked for which step.
class Asked final : public WorkloadModel {
 public:
  [[nodiscard]] const ParameterSpace& parameters() const override { return space_; }
  [[nodiscard]] StepProgram build() const override {
    ProgramWriter writer{1};
    writer.make_persistent({0, 1000_MiB});
    return writer.finish();
  }
  [[nodiscard]] StepProgram step(const Point& point) const override {
    ++times[point[0]];
    ProgramWriter writer{1};
    writer.drop(writer.make(static_cast<Bytes>(point[0]) * 8_MiB));
    StepProgram program = writer.finish();
    program.duration = std::chrono::milliseconds{1 + point[0]};
    return program;
  }
  [[nodiscard]] std::int64_t samples(const Point& point) const override { return point[0]; }
  [[nodiscard]] std::int64_t pixels(const Point& point) const override { return point[0]; }

  mutable std::map<std::int64_t, int> times;

 private:
  ParameterSpace space_{{{"batch", 500, 990}}};
};

// The validation at 990 needs more than the cache has, once in every run, so that no run tells what retries
// cost elsewhere; it takes half the time, so that no bound ends the search: 401 batches could be the best.
TEST(Comparison, TheOracleGivesUpAfterTwentyFullRunsInVain) {
  TrainingScenario scenario = read_training(parse_document(bent_scenario(), "small.json"));
  const auto model = std::make_shared<Asked>();
  scenario.model = model;
  scenario.setup.model = model.get();
  scenario.setup.iterations = 6;
  scenario.setup.bounds.parameters = {{"batch", 500, 900}};
  scenario.setup.start = {900};
  scenario.setup.phases = {{.name = "validation", .every = 2, .point = {990}}};
  const auto oracle = find_oracle(scenario);
  ASSERT_TRUE(oracle);
  EXPECT_EQ(oracle->run.final_point, Point{900});
  EXPECT_EQ(*find_metric(oracle->metrics, "alloc_retries"), 1);
  std::size_t in_full = 0;  // asked for more often than one that was only probed
  for (const auto& [batch, times] : model->times) in_full += batch <= 900 && times > model->times.at(500);
  EXPECT_EQ(in_full, 1u + 20u);
}

// Three parameters have too many values to look at each: the strides must still move all of them.
TEST(Comparison, TheOracleMovesEveryParameter) {
  const TrainingScenario scenario = read_training(parse_document(
      R"({"version": 1, "kind": "training", "name": "three", "objective": "samples_per_s",
          "device": {"gpu": "h100-80gb", "limit": "2GiB"},
          "workload": {"model": "models/generate.json", "iterations": 5,
                       "start": {"batch": 1, "new": 16, "prompt": 512},
                       "bounds": {"batch": [1, 64], "new": [1, 16], "prompt": [1, 2048]}},
          "policies": [{"use": "fixed"}]})",
      VRAMLAB_SOURCE_DIR "/scenarios/three.json"));
  const double best = *find_metric(find_oracle(scenario)->metrics, "objective");
  for (const Point& point : {Point{32, 2, 16}, Point{64, 2, 96}}) {
    TrainingScenario one = scenario;
    one.setup.start = scenario.setup.bounds.clamp(point);
    const PolicyResult fixed = run_policy(one, {"fixed", {.use = "fixed"}});
    ASSERT_EQ(*find_metric(fixed.metrics, "ooms"), 0);
    EXPECT_LE(*find_metric(fixed.metrics, "objective"), 1.01 * best)
        << point[0];  // strides leave a little out
  }
}

// The validation begins at 48, which fails, as half of it does; both phases end where the band ends for them:
// predictive's at 11, settled's at 10. Training makes no room for what gives way itself.
TEST(Comparison, PhasesAreMovedByTunersOfTheirOwn) {
  const TrainingScenario scenario =
      read_training(read_document(VRAMLAB_SOURCE_DIR "/docs/examples/moved-validation.json"));
  for (const PolicyEntry& entry : {scenario.policies.front(), scenario.policies.back()}) {
    const PolicyResult result = run_policy(scenario, entry);
    EXPECT_EQ(result.run.phase_points, (std::vector<Point>{{11, 128}, {10, 128}})) << entry.label;
    EXPECT_EQ(*find_metric(result.metrics, "phase_ooms"), 2) << entry.label;
    EXPECT_EQ(*find_metric(result.metrics, "ooms"), 2) << entry.label;
    EXPECT_EQ(result.run.phase_adjustments[0].front().from, (Point{48, 128})) << entry.label;
    EXPECT_EQ(result.run.phase_adjustments[0].front().iteration, 10) << entry.label;
    for (const Adjustment& change : result.run.adjustments) {
      EXPECT_FALSE(change.reason.starts_with("validation")) << change.reason;
    }
  }
}

// At the edge of a card retries take time, so that the first steps do not show what a run comes to: whatever
// the range and the start, no fixed choice within the range did more.
TEST(Comparison, AWiderRangeNeverMakesAWorseOracle) {
  TrainingScenario scenario = read_training(parse_document(
      R"({"version": 1, "kind": "training", "name": "edge", "objective": "samples_per_s",
          "target": {"usage": 0.94, "margin": 0.05}, "device": {"gpu": "rtx-3060-12gb"},
          "workload": {"model": "models/resnet50.json", "iterations": 40, "start": {"batch": 136, "px": 192},
                       "bounds": {"batch": [136, 178], "px": [192, 192]}},
          "policies": [{"use": "fixed"}]})",
      VRAMLAB_SOURCE_DIR "/scenarios/edge.json"));
  const auto objective = [&](std::int64_t low, std::int64_t high, std::int64_t start) {
    scenario.setup.bounds.parameters[0].low = low;
    scenario.setup.bounds.parameters[0].high = high;
    scenario.setup.start[0] = start;
    return *find_metric(find_oracle(scenario)->metrics, "objective");
  };
  const double wide = objective(100, 256, 136);
  for (const std::int64_t high : {140, 156, 170, 178}) EXPECT_LE(objective(136, high, 136), wide) << high;
  for (const std::int64_t batch : {136, 150, 168, 172, 178}) {
    scenario.setup.start[0] = batch;
    const PolicyResult fixed = run_policy(scenario, {"fixed", {.use = "fixed"}});
    ASSERT_EQ(*find_metric(fixed.metrics, "ooms"), 0);
    EXPECT_LE(*find_metric(fixed.metrics, "objective"), wide) << batch;
  }
}

TEST(Comparison, ARunThatEndedEarlyKeepsOnlyItsShareOfARate) {
  const TrainingScenario scenario =
      read_training(parse_document(bent_scenario("\"batch\": 8", "\"batch\": 40"), "small.json"));
  const PolicyResult result = run_policy(scenario, scenario.policies[0]);
  EXPECT_EQ(result.run.ended_early, "10 steps in a row ran out of memory at batch 40");
  EXPECT_EQ(*find_metric(result.metrics, "objective"), 0);
}

// They are there first; what comes later takes only what is free.
TEST(Comparison, TheOracleLeavesRoomForOtherProcesses) {
  const Comparison comparison = compare_policies(read_training(parse_document(
      bent_scenario("\"context\": 0", "\"context\": 0, \"others\": [{\"to_s\": 3, \"bytes\": \"3000MiB\"}]"),
      "small.json")));
  EXPECT_EQ(comparison.find("oracle")->run.final_point, Point{7});  // 1000 + 7 · 810 of 7000 MiB
}

TEST(Comparison, RefusesALabelThatIsNotThere) {
  EXPECT_THROW(compare_policies(read_training(parse_document(bent_scenario(), "small.json")), {"fixd"}),
               InputError);
}

TEST(Comparison, EqualInputGivesEqualBytes) {
  const auto text = [] {
    const TrainingScenario scenario = read_training(parse_document(bent_scenario(), "small.json"));
    return comparison_json(scenario, compare_policies(scenario), {}).dump();
  };
  EXPECT_EQ(text(), text());
}

// Usage 0.10 + 0.081 a sample: within 0.90, the margin of `binsearch`, 9 samples are the most.
Json searching(const char* search) {
  Json json = Json::parse(bent_scenario());
  json["policies"][0]["after_search"] = Json::parse(search);
  json["policies"][0]["label"] = "fixed";
  return json;
}

Comparison compared(const Json& json) {
  return compare_policies(read_training(parse_document(json.dump(), "small.json")));
}

// Steps of 100 ms: the search's time is part of the run's, and lowers its rate.
TEST(AfterSearch, TheRunBeginsAtWhatWasFoundAndTheSearchCounts) {
  const Comparison comparison = compared(searching(R"({"use": "binsearch", "reduction": 1})"));
  const PolicyResult& result = *comparison.find("fixed");
  ASSERT_TRUE(result.search);
  EXPECT_EQ(result.search->answer.batch, 9);
  EXPECT_EQ(result.run.iterations.front().point(), Point{9});
  EXPECT_EQ(result.run.iterations.front().start, result.search->duration);
  EXPECT_EQ(metric(comparison, "fixed", "search_probes"), static_cast<double>(result.search->trials.size()));
  EXPECT_EQ(metric(comparison, "fixed", "search_ooms"), static_cast<double>(result.search->ooms));
  EXPECT_EQ(metric(comparison, "fixed", "ooms"), 0);
  const double seconds = to_seconds(result.search->duration);
  EXPECT_GT(seconds, 0.3);
  EXPECT_NEAR(metric(comparison, "fixed", "samples_per_s"), 900 / (10 + seconds), 0.1);
  EXPECT_FALSE(find_metric(comparison.find("rule")->metrics, "search_probes"));
  EXPECT_EQ(comparison.find("oracle")->run.final_point, Point{9});  // as without
}

TEST(AfterSearch, StaysWithinItsOwnRange) {
  const Comparison comparison =
      compared(searching(R"({"use": "binsearch", "reduction": 1, "low": 3, "high": 6})"));
  EXPECT_EQ(comparison.find("fixed")->run.iterations.front().point(), Point{6});
}

// Another process leaves 262 MiB: no step fits, in the search or in the run.
TEST(AfterSearch, TheRunBeginsAtTheSmallestWhereNothingWasFound) {
  Json json = searching(R"({"use": "binsearch", "low": 3})");
  json["device"]["others"] = Json::parse(R"([{"bytes": "9700MiB"}])");
  const TrainingScenario scenario = read_training(parse_document(json.dump(), "small.json"));
  const auto experiment = read_experiment(parse_document(json.dump(), "small.json"));
  experiment->run({"fixed"});
  const PolicyResult result = run_policy(scenario, scenario.policies[0]);
  EXPECT_NE(result.search->answer.action, SearcherAnswer::Action::found);
  EXPECT_EQ(result.run.iterations.front().point(), Point{3});
  const auto endings = experiment->endings();
  EXPECT_TRUE(std::ranges::any_of(endings, [](const std::string& line) {
    return line.starts_with("fixed began at the smallest batch, 3: its search (");
  }));
  EXPECT_EQ(experiment->json()["policies"][0]["search"]["found"], false);
}

}  // namespace
}  // namespace vramlab
