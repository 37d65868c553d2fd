// A policy of a plugin that throws or answers what no answer can be ends its own run, with a reason.
#include <gmock/gmock.h>

#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/kinds/training/run.hpp"
#include "lab/parallel.hpp"
#include "plugins/guard.hpp"
#include "policies/contract/epoch_books.hpp"
#include "tests/lab/scenario_rig.hpp"
#include "tests/plugins/loaded.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A run of 20 steps whose second policy is `use`; the first is `fixed`.
Comparison training_with(const std::string& use,
                         const std::shared_ptr<const PolicySet>& known = loaded("hostile")) {
  Json json = Json::parse(bent_scenario("\"iterations\": 100", "\"iterations\": 20"));
  json.erase("expect");
  json["policies"].push_back({{"use", use}});
  return compare_policies(read_training(parse_document(json.dump(), "hostile.json", known)));
}

struct TunerCase {
  const char* use;
  std::size_t steps;  // that it does before its run ends
  std::string reason;
};

class HostileTuner : public testing::TestWithParam<TunerCase> {};

TEST_P(HostileTuner, EndsItsOwnRunAndNoOther) {
  for (const auto& known : here_and_isolated("hostile")) {
    const Comparison comparison = training_with(GetParam().use, known);
    const TrainingRun& run = comparison.find(GetParam().use)->run;
    EXPECT_THAT(run.ended_early, StartsWith(GetParam().reason));
    EXPECT_EQ(run.iterations.size(), GetParam().steps);
    EXPECT_EQ(run.final_point, (Point{8}));
    EXPECT_EQ(comparison.find("fixed")->run.iterations.size(), 20u);
    EXPECT_EQ(comparison.find("fixed")->run.ended_early, "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, HostileTuner,
    testing::Values(
        TunerCase{"throwing-constructor", 1,
                  "the policy throwing-constructor of a plugin failed: no room for me"},
        TunerCase{"null", 1, "the policy null of a plugin was not made: the plugin gave none"},
        TunerCase{"throws", 3, "the policy throws of a plugin failed: divided by zero"},
        TunerCase{"throws-input", 1,
                  "the policy throws-input of a plugin failed: /workload: is not to my liking"},
        TunerCase{"throws-number", 1,
                  "the policy throws-number of a plugin failed, and threw what is not a std::exception"},
        TunerCase{"nan", 1, "the policy nan of a plugin asked for a change of -9223372036854775808"},
        TunerCase{"wrong-size", 1, "the policy gave 2 changes for 1 parameters; its run ends here"},
        TunerCase{"talks", 1,
                  "the policy talks of a plugin gave a reason of 100000 bytes; 4096 are the most"},
        TunerCase{"ends-without-words", 1, "the policy ended it and gave no reason"},
        TunerCase{"speaks-latin-1", 1,
                  "the policy speaks-latin-1 of a plugin gave a reason that is not UTF-8"},
        TunerCase{"logs-latin-1", 1, "the policy logs-latin-1 of a plugin gave a reason that is not UTF-8"},
        TunerCase{"logs", 1,
                  "the policy logs of a plugin logged 5000 lines in one answer; 1000 are the most"},
        TunerCase{"asks-for-all-memory", 1,
                  "the policy asks-for-all-memory of a plugin ran out of the program's memory"}),
    [](const auto& one) {
      std::string name = one.param.use;
      std::erase(name, '-');
      return name;
    });

// The same run, whose process dies after step 5 with a checkpoint after every second one.
Comparison restarted_with(const std::string& use, const std::shared_ptr<const PolicySet>& known) {
  Json json = Json::parse(bent_scenario("\"iterations\": 100", "\"iterations\": 20"));
  json.erase("expect");
  json["faults"] = {{"restart", {{"after", 5}, {"checkpoint_every", 2}}}};
  json["policies"].push_back({{"use", use}});
  return compare_policies(read_training(parse_document(json.dump(), "hostile.json", known)));
}

class HostileState : public testing::TestWithParam<TunerCase> {};

TEST_P(HostileState, EndsItsOwnRunAndNoOther) {
  for (const auto& known : here_and_isolated("hostile")) {
    const Comparison comparison = restarted_with(GetParam().use, known);
    const TrainingRun& run = comparison.find(GetParam().use)->run;
    EXPECT_THAT(run.ended_early, StartsWith(GetParam().reason));
    EXPECT_EQ(run.iterations.size(), GetParam().steps);
    EXPECT_EQ(run.final_point, (Point{8}));
    EXPECT_EQ(comparison.find("fixed")->run.iterations.size(), 21u);
    EXPECT_EQ(comparison.find("fixed")->run.ended_early, "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, HostileState,
    testing::Values(
        TunerCase{"save-throws", 4, "the policy save-throws of a plugin failed: no words"},
        TunerCase{"save-refuses", 4, "the policy save-refuses of a plugin failed: not now"},
        TunerCase{
            "save-too-long", 4,
            "the policy save-too-long of a plugin saved a state of 67108865 bytes; 67108864 are the most"},
        TunerCase{"load-throws", 5, "the policy load-throws of a plugin failed: cannot read"},
        TunerCase{"load-refuses", 5, "the policy could not go on after the restart: not mine"},
        TunerCase{"load-without-words", 5,
                  "the policy load-without-words of a plugin refused without saying what"}),
    [](const auto& one) {
      std::string name = one.param.use;
      std::erase(name, '-');
      return name;
    });

// The contract of every tuner: a change beyond the bounds is cut to them.
TEST(HostileTuner, OutOfBoundsStaysInBounds) {
  Json json = Json::parse(bent_scenario("\"810MiB\"", "\"100MiB\""));  // so that the largest batch fits
  json["policies"].push_back({{"use", "out-of-bounds"}});
  const Comparison comparison =
      compare_policies(read_training(parse_document(json.dump(), "hostile.json", loaded("hostile"))));
  const TrainingRun& run = comparison.find("out-of-bounds")->run;
  EXPECT_EQ(run.ended_early, "");
  EXPECT_EQ(run.final_point, (Point{64}));
  ASSERT_FALSE(run.adjustments.empty());
  for (const Adjustment& change : run.adjustments) {
    EXPECT_LE(change.to[0], 64);
    EXPECT_GE(change.to[0], 2);
  }
}

// 64 MiB a step: with the 16th and what lists them it is more than 1 GiB.
TEST(HostileTuner, EndlessGrowthOfItsStateEndsItsRun) {
  const Comparison comparison = training_with("grows");
  const TrainingRun& run = comparison.find("grows")->run;
  EXPECT_EQ(run.ended_early,
            "the policy grows of a plugin has grown by 1.0 GiB in its answers; 1.0 GiB are the most");
  EXPECT_EQ(run.iterations.size(), 16u);
  EXPECT_EQ(comparison.find("fixed")->run.iterations.size(), 20u);
}

// Each thread's policies are held to what they keep themselves, whatever the others do.
TEST(HostileTuner, ItsGrowthDoesNotDependOnOtherThreads) {
  std::vector<std::size_t> steps(8);
  for_each_index(steps.size(), 8, [&](std::size_t i) {
    steps[i] = training_with("grows").find("grows")->run.iterations.size();
  });
  EXPECT_THAT(steps, testing::Each(16u));
}

// What it answers is the program's, not its state: 17,000 answers of 64 KiB are more than 1 GiB.
TEST(Guard, AnswersAreNotGrowth) {
  Guard guard{"saves", {}};
  for (int i = 0; i < 17000; ++i) {
    const auto state = guard.call([] { return std::vector<double>(std::size_t{1} << 13); });
    EXPECT_EQ(state.size(), std::size_t{1} << 13);
  }
  EXPECT_FALSE(guard.failed());
}

// The host's list grows while a composer looks at it, and is not the composer's state.
TEST(Guard, WaitingSamplesAreNotGrowth) {
  Candidates candidates(100'000, 1, 0, false);
  const HeapCount count;
  EXPECT_EQ(candidates.look(100'000).size(), 100'000u);
  EXPECT_EQ(count.bytes(), 0);
}

TEST(CountedNew, TakesAlignmentsBelowAPointers) {
  constexpr std::align_val_t kSmall{4};
  const HeapCount count;
  void* place = ::operator new(100, kSmall);
  EXPECT_EQ(count.bytes(), 100);
  ::operator delete (place, std::size_t{100}, kSmall);
  EXPECT_EQ(count.bytes(), 0);
}

SearchResult search_with(const std::string& use) {
  Json json = read_json_file(VRAMLAB_SOURCE_DIR "/scenarios/find-gpt2.json");
  json.erase("expect");
  json["policies"] = Json::array({{{"use", use}}});
  const SearchScenario scenario = read_search(
      parse_document(json.dump(), VRAMLAB_SOURCE_DIR "/scenarios/find-gpt2.json", loaded("hostile")));
  return compare_searchers(scenario).front();
}

TEST(HostileSearcher, GivesUpWithAReason) {
  const auto reason = [](const std::string& use) {
    const SearcherAnswer answer = search_with(use).buckets.front().run.answer;
    EXPECT_EQ(answer.action, SearcherAnswer::Action::give_up) << use;
    return answer.reason;
  };
  EXPECT_EQ(reason("search-throws"), "the policy search-throws of a plugin failed: lost the way");
  EXPECT_THAT(
      reason("search-nan"),
      StartsWith("the policy search-nan of a plugin named batch -9223372036854775808; allowed are 1"));
  EXPECT_EQ(reason("search-no-action"),
            "the policy search-no-action of a plugin answered with an action that there is not");
  EXPECT_THAT(reason("search-no-depth"), HasSubstr("wants probes of -1 steps"));
  EXPECT_THAT(reason("search-for-ever"), HasSubstr("no end after"));
}

// How a run of that scenario ends whose composer has the fault.
std::string composer_reason(const std::string& name, const std::string& fault) {
  const std::string file = VRAMLAB_SOURCE_DIR "/scenarios/" + name + ".json";
  Json json = read_json_file(file);
  json.erase("expect");
  json["policies"] = Json::array({{{"use", "compose-" + fault}}});
  return compare_composers(read_epoch(parse_document(json.dump(), file, loaded("hostile"))))
      .front()
      .run.ended_early;
}

TEST(HostileComposer, EndsItsRunWithAReason) {
  const auto reason = [](const std::string& fault) { return composer_reason("epoch-skewed", fault); };
  EXPECT_EQ(reason("throw"), "the policy compose-throw of a plugin failed: lost count");
  EXPECT_THAT(reason("nothing"), StartsWith("the composer answered a batch of 0 samples"));
  EXPECT_EQ(reason("unknown"), "a composer named a sample that does not wait");
  EXPECT_EQ(reason("twice"), "a composer named a sample that does not wait");
  EXPECT_EQ(reason("clean-up"), "the composer asked twice for a clean-up");
  EXPECT_THAT(reason("prediction"), HasSubstr("predicted at most 1 B and likely 2 B"));
  EXPECT_EQ(reason("told"), "the policy compose-told of a plugin failed: would not hear");
  EXPECT_EQ(reason("rule"), "the policy compose-rule of a plugin wants micro-batches of -4 samples");
}

// 64 samples at once do not fit. The guardian stands around any composer where it is asked for, halves what
// fails, and hears of the composer's faults as the host does.
TEST(HostileComposer, MayHaveTheGuardianAroundIt) {
  const std::string file = VRAMLAB_SOURCE_DIR "/scenarios/epoch-mixed-tasks.json";
  Json json = read_json_file(file);
  json.erase("expect");
  json["workload"]["data"]["samples"] = 256;
  json["workload"]["restart_every"] = 3;
  json["policies"] = Json::parse(R"([
    {"use": "compose-all", "label": "alone"},
    {"use": "compose-all", "label": "guarded", "guardian": true, "safety_margin": 0.05},
    {"use": "compose-throw", "label": "throws", "guardian": true}
  ])");
  const auto results = compare_composers(read_epoch(parse_document(json.dump(), file, loaded("hostile"))));
  EXPECT_THAT(results[0].run.ended_early, HasSubstr("in a row ran out of memory"));
  EXPECT_EQ(results[1].run.ended_early, "");
  EXPECT_EQ(results[1].run.totals.samples, 256);
  EXPECT_GT(results[1].run.totals.ooms, 0);
  EXPECT_EQ(results[2].run.ended_early, "the policy compose-throw of a plugin failed: lost count");
  json["policies"] = Json::parse(R"([{"use": "compose-all", "guardain": true}])");
  try {
    read_epoch(parse_document(json.dump(), file, loaded("hostile")));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Did you mean \"guardian\"?"));
  }
}

// That scenario's process ends after every 25 batches and goes on from what was saved.
TEST(HostileComposer, ASavedStateEndsItsRunWithAReason) {
  EXPECT_EQ(composer_reason("epoch-restarts", "save"),
            "the policy compose-save of a plugin saved a state with a NaN or an infinity in it");
  EXPECT_EQ(
      composer_reason("epoch-restarts", "long-save"),
      "the policy compose-long-save of a plugin saved a state of 8388609 numbers; 8388608 are the most");
  EXPECT_EQ(composer_reason("epoch-restarts", "restore"),
            "the policy compose-restore of a plugin failed: cannot read");
  EXPECT_EQ(composer_reason("epoch-restarts", "refuse"),
            "the policy could not go on after the restart: not mine");
}

TEST(HostileAdmitter, EndsItsRunWithAReason) {
  Json json = read_json_file(VRAMLAB_SOURCE_DIR "/scenarios/queue-race.json");
  json.erase("expect");
  const auto reason = [&](const std::string& fault) {
    json["policies"] = Json::array({{{"use", "admit-" + fault}}});
    const JobsScenario scenario = read_jobs(
        parse_document(json.dump(), VRAMLAB_SOURCE_DIR "/scenarios/queue-race.json", loaded("hostile")));
    const JobsResult result = compare_queues(scenario).front();
    EXPECT_FALSE(result.metrics.empty());
    return result.run.ended_early;
  };
  EXPECT_EQ(reason("throw"), "the policy admit-throw of a plugin failed: lost the list");
  EXPECT_EQ(reason("job"), "the queue policy named a job that does not wait");
  EXPECT_EQ(reason("cards"), "the queue policy named cards that are not of one node");
  EXPECT_EQ(reason("no-card"), "the queue policy named cards that are not of one node");
  EXPECT_EQ(reason("promise"), "the policy admit-promise of a plugin promised 18446744073709551615 bytes");
  EXPECT_EQ(reason("batch"), "the policy admit-batch of a plugin started a job with 1 batches of 0");
  EXPECT_THAT(reason("for-ever"), HasSubstr("answers at one moment without an end"));
  EXPECT_EQ(reason("rules"), "the policy admit-rules of a plugin has rules with negative times");
  EXPECT_EQ(reason("available"), "the policy admit-available of a plugin failed: cannot say");
}

}  // namespace
}  // namespace vramlab
