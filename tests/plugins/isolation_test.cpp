// A policy of a plugin in a process of its own: what would end the program ends its run where it stands. That
// answers are those of the program hold twins_test.cpp and hostile_policies_test.cpp.
#include <gtest/gtest.h>

#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/kinds/training/run.hpp"
#include "plugins/answer_process.hpp"
#include "tests/lab/scenario_rig.hpp"
#include "tests/plugins/loaded.hpp"

namespace vramlab {
namespace {

ScenarioDocument with_policies(const std::string& name, const Json& policies, int limit = 60) {
  const std::string file = VRAMLAB_SOURCE_DIR "/scenarios/" + name + ".json";
  Json json = read_json_file(file);
  json.erase("expect");
  json["policies"] = policies;
  return parse_document(json.dump(), file, loaded_apart("hostile", limit));
}

// A run of 20 steps after those of `fixed`, and before those of another `fixed`.
Comparison training_between(const std::string& use, int limit = 60) {
  Json json = Json::parse(bent_scenario("\"iterations\": 100", "\"iterations\": 20"));
  json.erase("expect");
  json["policies"].push_back({{"use", use}});
  json["policies"].push_back({{"use", "fixed"}, {"label", "behind"}});
  return compare_policies(
      read_training(parse_document(json.dump(), "hostile.json", loaded_apart("hostile", limit))));
}

struct EndCase {
  const char* use;
  std::size_t steps;
  const char* did;
};

class IsolatedTuner : public testing::TestWithParam<EndCase> {};

// The steps before its end are there, and the others' runs are whole.
TEST_P(IsolatedTuner, EndsItsOwnRunAndNoOther) {
  const auto& [use, steps, did] = GetParam();
  const Comparison comparison = training_between(use, 2);
  const TrainingRun& run = comparison.find(use)->run;
  EXPECT_EQ(run.ended_early, std::string{"the policy "} + use + " of a plugin " + did);
  EXPECT_EQ(run.iterations.size(), steps);
  for (const char* other : {"fixed", "behind"}) {
    EXPECT_EQ(comparison.find(other)->run.iterations.size(), 20u);
    EXPECT_EQ(comparison.find(other)->run.ended_early, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, IsolatedTuner,
                         testing::Values(EndCase{"exits", 1, "ended the program with exit code 0"},
                                         EndCase{"exiting-constructor", 1,
                                                 "ended the program with exit code 7"},
                                         EndCase{"aborts", 1, "crashed (Aborted)"},
                                         EndCase{"crashes", 1, "crashed (Segmentation fault)"},
                                         EndCase{"crashes-late", 3, "crashed (Killed)"},
                                         EndCase{"never-answers", 1, "took longer than 2 s"},
                                         EndCase{"speaks-latin-1", 1, "gave a reason that is not UTF-8"},
                                         EndCase{"throws", 3, "failed: divided by zero"}),
                         [](const auto& one) {
                           std::string name = one.param.use;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Isolated, SearchersComposersAndAdmittersEndTheirRuns) {
  const auto search = compare_searchers(
      read_search(with_policies("find-gpt2", Json::parse(R"([{"use": "search-aborts"}])"))));
  EXPECT_EQ(search.front().buckets.front().run.answer.reason,
            "the policy search-aborts of a plugin crashed (Aborted)");
  const auto epoch = compare_composers(read_epoch(with_policies(
      "epoch-skewed", Json::parse(R"([{"use": "compose-exit"}, {"use": "planned-batches"}])"))));
  EXPECT_EQ(epoch[0].run.ended_early,
            "the policy compose-exit of a plugin ended the program with exit code 5");
  EXPECT_EQ(epoch[1].run.ended_early, "");
  const auto jobs =
      compare_queues(read_jobs(with_policies("queue-race", Json::parse(R"([{"use": "admit-loop"}])"), 1)));
  EXPECT_EQ(jobs.front().run.ended_early, "the policy admit-loop of a plugin took longer than 1 s");
}

// In one run they have one process. 7 and 8 are what the second is asked before the first is asked again.
TEST(AnswerProcess, PoliciesOfOneRunEndTogetherAndTheReasonSaysWhose) {
  RunProcess run{std::chrono::seconds{60}};
  RemoteCalls first{"first", run.join()};
  RemoteCalls second{"second", run.join()};
  const auto number = [](RemoteCalls& calls, int value) {
    return calls.ask<int>('d', value, [&] {
      if (value == 8) ::_exit(3);
      return 10 * value;
    });
  };
  const auto reason = [&](RemoteCalls& calls, int value) -> std::string {
    try {
      number(calls, value);
    } catch (const PolicyFault& fault) {
      return fault.what();
    }
    return "none";
  };
  EXPECT_EQ(number(first, 1), 10);
  EXPECT_EQ(number(second, 7), 70);
  EXPECT_EQ(reason(second, 8), "the policy second of a plugin ended the program with exit code 3");
  EXPECT_EQ(reason(first, 2),
            "the policy first of a plugin ran in one process with the policy second, which ended the program "
            "with exit code 3");
}

// A wild pointer may hit what the run rests on: then it asks something else there.
TEST(AnswerProcess, ACopyThatGoesAnotherWayIsGivenUp) {
  RunProcess run{std::chrono::seconds{60}};
  RemoteCalls calls{"wild", run.join()};
  const std::int64_t moment = calls.is_copy() ? 5 : 4;
  try {
    calls.ask<int>('d', moment, [] { return 1; });
    FAIL();
  } catch (const PolicyFault& fault) {
    EXPECT_STREQ(fault.what(),
                 "the policy wild of a plugin spoilt the process that it runs in: it sent what is no answer");
  }
}

// Answers of any size cross: a saved state is larger than a pipe.
TEST(AnswerProcess, LongAnswersAndRefusalsCross) {
  RunProcess run{std::chrono::seconds{60}};
  RemoteCalls calls{"long", run.join()};
  const auto state = calls.ask<std::vector<double>>('k', 0, [] {
    std::vector<double> numbers(1 << 20);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i) / 3;
    return numbers;
  });
  ASSERT_EQ(state.size(), std::size_t{1} << 20);
  EXPECT_EQ(state[1'000'000], 1'000'000.0 / 3);
  try {
    calls.ask<Nothing>('l', 0, []() -> Nothing { throw InputError("/a", "is not b."); });
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems(), (std::vector<Problem>{{"/a", "is not b."}}));
  }
  EXPECT_EQ(calls.ask<std::string>('s', 0, [] { return std::string{"still there"}; }), "still there");
}

}  // namespace
}  // namespace vramlab
