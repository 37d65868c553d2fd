#include <gmock/gmock.h>

#include "policies/contract/policy_set.hpp"
#include "policies/tuners/dual_optimizer_options.hpp"
#include "tests/policies/tuner_rig.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Problem> problems_of(const PolicyChoice& choice, const ParameterSpace& space = batch_and_lq()) {
  try {
    (void)builtin_policies()->tuners.make(choice, space);
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

std::vector<Problem> problems_of(const OptionMap& options) {
  return problems_of({"dual-optimizer", "", options, "/policies/1"});
}

TEST(Registry, ListsTheBuiltins) {
  std::vector<std::string> names;
  for (const TunerEntry& entry : builtin_policies()->tuners) {
    names.push_back(entry.name);
    EXPECT_FALSE(entry.summary.empty());
    EXPECT_NE(entry.make, nullptr);
    for (const Field& option : entry.options) EXPECT_FALSE(option.help.empty()) << option.key;
  }
  EXPECT_THAT(names,
              testing::IsSupersetOf({"fixed", "threshold-step", "aimd", "dual-optimizer", "predictive"}));
  EXPECT_EQ(names.front(), "fixed");
}

TEST(Registry, EveryProfileOfEveryTunerCanBeMade) {
  for (const TunerEntry& entry : builtin_policies()->tuners) {
    EXPECT_NE(builtin_policies()->tuners.make({entry.name, "", {}, ""}, batch_and_lq()), nullptr);
    for (const PolicyProfile& profile : entry.profiles) {
      EXPECT_NE(builtin_policies()->tuners.make({entry.name, profile.name, {}, ""}, batch_and_lq()), nullptr)
          << profile.name;
    }
  }
}

TEST(Registry, AnswersAWrongNameWithTheRightOne) {
  EXPECT_THAT(problems_of({"dual-optimiser", "", {}, "/policies/1"}),
              ElementsAre(Problem{"/policies/1/use",
                                  "no policy \"dual-optimiser\". Did you mean \"dual-optimizer\"?"}));
  EXPECT_THAT(
      problems_of({"dual-optimizer", "setled", {}, "/policies/1"}),
      ElementsAre(Problem{"/policies/1/profile",
                          "the policy dual-optimizer has no profile \"setled\". Did you mean \"settled\"?"}));
  EXPECT_THAT(problems_of({"fixed", "peak", {}, "/policies/1"}),
              ElementsAre(Problem{"/policies/1/profile", "the policy fixed has no profiles."}));
}

TEST(Registry, OptionsOverrideTheProfile) {
  const PolicyChoice choice{"dual-optimizer", "peak", {{"lq_up_at_most", std::int64_t{3}, ""}}, ""};
  const DualOptimizerOptions options = parse_dual_optimizer(builtin_policies()->tuners.options(choice));
  EXPECT_EQ(options.lq_up_at_most, 3);
  EXPECT_EQ(options.adjustment_frequency, 25);
  EXPECT_EQ(options.peak_after_period, PeakAfterPeriod::keep);
}

// The published figures: 0.85, 0.05, f 100 / 25 / 25, batch 2–64, lq 32–256, history 50, 100 adjustments.
TEST(Registry, ProfilesHaveThePublishedDefaults) {
  for (const auto& [profile, frequency] :
       {std::pair{"blind", 100}, std::pair{"peak", 25}, std::pair{"settled", 25}, std::pair{"", 25}}) {
    const auto options =
        parse_dual_optimizer(builtin_policies()->tuners.options({"dual-optimizer", profile, {}, ""}));
    EXPECT_EQ(options.adjustment_frequency, frequency) << profile;
    EXPECT_EQ(options.target_vram_usage, 0.85);
    EXPECT_EQ(options.safety_margin, 0.05);
    EXPECT_EQ(options.min_batch_size, 2);
    EXPECT_EQ(options.max_batch_size, 64);
    EXPECT_EQ(options.min_lq_size, 32);
    EXPECT_EQ(options.max_lq_size, 256);
    EXPECT_EQ(options.vram_history_size, 50);
    EXPECT_EQ(options.max_adjustments, 100);
    EXPECT_EQ(options.max_adjustments_counts, AdjustmentCount::recoveries);
    EXPECT_EQ(options.lq_granularity, 1);
  }
}

struct PresetCase {
  std::string name;
  double target, aggressive;
  std::int64_t min_lq, max_lq, min_batch, max_batch;
};

// The recommendations published for three cards; a preset's target is the lower end.
TEST(Registry, PresetsAreThePublishedRecommendations) {
  const std::vector<PresetCase> cases = {{"rtx-3060", 0.80, 0.85, 32, 256, 2, 64},
                                         {"rtx-4090", 0.85, 0.90, 64, 512, 4, 128},
                                         {"rtx-3080", 0.75, 0.80, 32, 192, 2, 32}};
  for (const PresetCase& preset : cases) {
    const OptionMap map{{"preset", preset.name, ""}};
    const auto options = parse_dual_optimizer(map);
    EXPECT_EQ(options.target_vram_usage, preset.target) << preset.name;
    EXPECT_EQ(options.min_lq_size, preset.min_lq) << preset.name;
    EXPECT_EQ(options.max_lq_size, preset.max_lq) << preset.name;
    EXPECT_EQ(options.min_batch_size, preset.min_batch) << preset.name;
    EXPECT_EQ(options.max_batch_size, preset.max_batch) << preset.name;
    EXPECT_EQ(parse_dual_optimizer(overlay(map, {{"aggressive", true, ""}})).target_vram_usage,
              preset.aggressive);
  }
}

TEST(Registry, OptionsOverrideThePreset) {
  const auto options = parse_dual_optimizer({{"preset", std::string("rtx-4090"), ""},
                                             {"target_vram_usage", 0.7, ""},
                                             {"max_lq_size", std::int64_t{128}, ""}});
  EXPECT_EQ(options.target_vram_usage, 0.7);
  EXPECT_EQ(options.max_lq_size, 128);
  EXPECT_EQ(options.min_lq_size, 64);
}

TEST(Registry, FaultyOptionsSayWhereAndWhat) {
  EXPECT_THAT(
      problems_of({{"target_vram_usage", 1.2, "/policies/1/target_vram_usage"}}),
      ElementsAre(Problem{"/policies/1/target_vram_usage", "1.2 is out of range. Allowed: 0.01 to 1."}));
  EXPECT_THAT(problems_of({{"max_batchsize", std::int64_t{8}, "/policies/1/max_batchsize"}}),
              ElementsAre(Problem{"/policies/1/max_batchsize",
                                  "unknown key \"max_batchsize\". Did you mean \"max_batch_size\"? (vramlab "
                                  "policies dual-optimizer lists all keys)"}));
  EXPECT_THAT(
      problems_of({{"min_batch_size", std::int64_t{16}, "/policies/1/min_batch_size"},
                   {"max_batch_size", std::int64_t{8}, "/policies/1/max_batch_size"},
                   {"min_lq_size", std::int64_t{300}, "/policies/1/min_lq_size"}}),
      ElementsAre(Problem{"/policies/1/min_batch_size", "min_batch_size 16 is above max_batch_size 8."},
                  Problem{"/policies/1/min_lq_size", "min_lq_size 300 is above max_lq_size 256."}));
  EXPECT_THAT(
      problems_of({{"adjustment_frequency", std::string("often"), "/policies/1/adjustment_frequency"}}),
      ElementsAre(Problem{"/policies/1/adjustment_frequency",
                          "\"often\" does not fit: a whole number is needed (1 to 1000000)."}));
  EXPECT_EQ(problems_of({{"aggressive", true, "/policies/1/aggressive"}}).size(), 1u);
  EXPECT_EQ(problems_of({"fixed", "", {{"step", std::int64_t{1}, ""}}, ""}).size(), 1u);
}

TEST(Registry, AWorkloadWithoutTheParameterIsRefused) {
  const ParameterSpace texts{{{"seq", 1, 1024}}};
  EXPECT_EQ(problems_of({"dual-optimizer", "", {}, ""}, texts).size(), 1u);
  const OptionMap batch{{"parameter", std::string("batch"), ""}};
  EXPECT_THAT(problems_of({"aimd", "", batch, ""}, texts).at(0).what, HasSubstr("moves \"batch\""));
  EXPECT_TRUE(problems_of({"aimd", "", {{"parameter", std::string("seq"), ""}}, ""}, texts).empty());
  EXPECT_TRUE(problems_of({"aimd", "", {}, ""}, texts).empty());  // then it moves the first
}

}  // namespace
}  // namespace vramlab
