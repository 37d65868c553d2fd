// Scenarios of every family through the seams where a real card comes in, with stand-ins for it.
#include "lab/decisions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/lab/scenario_rig.hpp"
#include "tests/runs/forwarded_performer.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

ScenarioDocument shipped_scenario(const std::string& name) {
  return read_document(VRAMLAB_SOURCE_DIR "/scenarios/" + name + ".json");
}

/// As a real card is asked for; the stand-ins do what pretended ones do.
struct StandIn {
  int made = 0;
  Question question{.make_performer = forwarded_performers(made),
                    .make_job_card = forwarded_cards(made),
                    .device_cards = 8};
};

// Less of the large ones: of find-generate two searchers, with failed tensors that stay
// for a while.
ScenarioDocument smaller_scenario(const std::string& name) {
  ScenarioDocument document = shipped_scenario(name);
  Json& json = document.json;
  json.erase("expect");
  if (name == "queue-own-policies") json["jobs"][1]["epoch"]["epochs"] = 1;
  if (name == "epoch-validation") json["workload"]["data"]["samples"] = 400;
  if (name != "find-generate") return document;
  json["policies"] = {json["policies"][1], json["policies"][5]};
  json["then_epoch"]["iterations"] = 10;
  json["workload"]["failed_tensors"] = "until-clean-up";
  return document;
}

class ThroughTheSeam : public testing::TestWithParam<const char*> {};

// Decisions and every figure of the result: nothing of a run is made past the seam.
TEST_P(ThroughTheSeam, AScenarioComesOutAsOnPretendedCards) {
  StandIn card;
  const ScenarioDocument document = smaller_scenario(GetParam());
  const auto pretended = read_experiment(document);
  const auto performed = read_experiment(document, card.question);
  pretended->run({});
  performed->run({});
  EXPECT_GT(card.made, 0);
  Json expected = pretended->json();
  Json result = performed->json();
  if (kind_of(document).name == "jobs") {  // says that memory is real
    EXPECT_EQ(result["notes"].size(), expected["notes"].size() + 1);
    result["notes"] = expected["notes"];
  }
  EXPECT_EQ(result, expected);

  ScenarioOnBoth both{document, card.question};
  both.run();
  EXPECT_TRUE(both.agrees());
  for (const DecisionsAgreement& policy : both.policies()) EXPECT_GT(policy.lines, 0u) << policy.label;
}

// Phases with models of their own, failed tensors and drawn lengths; restarts, phases and outliers of epochs;
// queues with real steps, with and without a model, and of jobs with policies of their own; several cards.
INSTANTIATE_TEST_SUITE_P(Shipped, ThroughTheSeam,
                         testing::Values("flip-flop", "find-phases", "find-optimizer-state", "find-generate",
                                         "epoch-lengths", "epoch-validation", "queue-steps-lock-step",
                                         "queue-one-card", "queue-own-policies",
                                         "../tests/data/device/queue-two-cards",
                                         "../tests/data/device/training-two-cards"));

// A card that has less than the scenario says: the first place where that shows is named.
TEST(Decisions, WhereACardDecidesOtherwiseTheFirstPlaceIsNamed) {
  StandIn card;
  card.question.make_performer = [](const ProcessWork& work, ProcessSetup setup, std::size_t /*card*/) {
    setup.use_step_cache = false;
    setup.allocator.limit = *setup.allocator.limit - 600_MiB;
    return std::make_unique<ForwardedPerformer>(work, setup);
  };
  std::vector<ScenarioOnBoth> all;
  all.emplace_back(shipped_scenario("find-phases"), card.question);
  all.back().run();
  EXPECT_FALSE(all.back().agrees());
  // Training takes 500 + 300 MiB · batch of 8,000 MiB; of 7,400 MiB the 24th no longer fits.
  EXPECT_THAT(decision_differences(all),
              testing::Contains(StartsWith("find-phases, binsearch: the card has \"probe of 24: oom")));
  const Json json = decisions_json(all)[0];
  EXPECT_EQ(json["kind"], "search");
  EXPECT_EQ(json["agrees"], false);
  EXPECT_THAT(json["policies"][1]["first_difference"]["card"].get<std::string>(), HasSubstr(": oom"));
  EXPECT_LT(json["policies"][1]["equal"], json["policies"][1]["decisions"]);
  EXPECT_EQ(json["policies"][0]["first_difference"], nullptr);  // power doubles: 16 fits both, 32 neither
  EXPECT_THAT(decisions_table(all).format(TableFormat::csv),
              StartsWith("family,scenario,policies alike,decisions alike\nsearchers,find-phases,1 of 3,"));
}

TEST(Decisions, EachCardOfAScenarioIsAnotherOneOfTheMachine) {
  std::vector<std::size_t> numbers;
  Question question{.device_cards = 2};
  question.make_job_card = [&](std::size_t card, Bytes total, Bytes context) {
    numbers.push_back(card);
    return std::make_unique<PretendedCard>(total, context);
  };
  question.make_performer = [&](const ProcessWork& work, ProcessSetup setup, std::size_t card) {
    numbers.push_back(card);
    setup.use_step_cache = false;
    return std::make_unique<ForwardedPerformer>(work, setup);
  };
  read_experiment(shipped_scenario("../tests/data/device/queue-two-cards"), question)->run({"one a card"});
  EXPECT_THAT(numbers, ElementsAre(0, 1));
  numbers.clear();
  question.decisions = true;  // no oracle
  read_experiment(shipped_scenario("../tests/data/device/training-two-cards"), question)->run({"aimd"});
  EXPECT_THAT(numbers, ElementsAre(0, 1));
}

// Of jobs that have a policy, in a queue: what it did counts beside who was admitted.
TEST(Decisions, WhatThePolicyOfAJobDoesIsADecision) {
  const auto experiment = read_experiment(smaller_scenario("queue-own-policies"), {.decisions = true});
  experiment->run({"held to need"});
  const std::vector<Decisions> decisions = experiment->decisions();
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_THAT(decisions[0].lines, testing::IsSupersetOf({"tuned: start at batch 12, lq 96 after step 0",
                                                         "tuned: 1800 samples, 0 failed steps",
                                                         "mix: 250 samples, 0 failed steps"}));
}

TEST(Decisions, AChangeAndAFailedStepAreDecisionsAndTimesAreNot) {
  const auto experiment = read_experiment(
      parse_document(bent_scenario("\"iterations\": 100", "\"iterations\": 30"), "small.json"),
      {.decisions = true});
  experiment->run({"fixed"});
  // The oracle is nobody's decision, and is not looked for.
  const std::vector<Decisions> decisions = experiment->decisions();
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].label, "fixed");
  EXPECT_THAT(decisions[0].lines, ElementsAre("ended at 8 of batch after 30 steps"));
}

// What the cards of a machine cannot do is refused by the key that asks for it, before anything runs.
TEST(Decisions, WhatRealCardsCannotDoIsRefusedByItsKey) {
  StandIn card;
  card.question.device_cards = 1;
  const auto refusal = [&](const std::string& name) -> std::string {
    try {
      read_experiment(shipped_scenario(name), card.question);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(
      refusal("find-two-cards"),
      HasSubstr(
          "find-two-cards.json: /more_devices: makes 2 cards, and this machine has 1 for --device cuda;"));
  EXPECT_THAT(refusal("queue-steps-mixed-day"), HasSubstr("/cards: makes 8 cards, and this machine has 1"));
  EXPECT_THAT(refusal("queue-race"), HasSubstr("queue-race.json: /fidelity: \"declared\" has no steps"));
  EXPECT_THAT(refusal("allocator/k1-22-small-first"),
              HasSubstr("--device cuda is for scenarios of kind training, jobs, epoch and search."));
  EXPECT_EQ(refusal("queue-steps-lock-step"), "none");
  EXPECT_EQ(refusal("queue-tuners"), "none");
  card.question.device_cards = 8;
  EXPECT_EQ(refusal("find-two-cards"), "none");
  EXPECT_EQ(refusal("queue-steps-mixed-day"), "none");
  EXPECT_EQ(card.made, 0);
}

}  // namespace
}  // namespace vramlab
