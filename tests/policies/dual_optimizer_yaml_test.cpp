#include <gmock/gmock.h>

#include "policies/tuners/dual_optimizer_options.hpp"
#include "tests/policies/tuner_rig.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OptionMap read(const std::string& text) { return read_dual_optimizer_yaml(text, "train.yml"); }

std::vector<Problem> problems_of(const std::string& text) {
  try {
    parse_dual_optimizer(read(text));
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

DualOptimizerOptions example(const std::string& name) {
  return parse_dual_optimizer(
      load_dual_optimizer_yaml(std::string(VRAMLAB_SOURCE_DIR) + "/docs/examples/" + name));
}

TEST(DualOptimizerYaml, ReadsTheBasicExample) {
  const DualOptimizerOptions options = example("dual-optimizer-basic.yaml");
  EXPECT_TRUE(options.enabled);
  EXPECT_EQ(options.target_vram_usage, 0.85);
  EXPECT_EQ(options.safety_margin, 0.05);
  EXPECT_EQ(options.adjustment_frequency, 100);
  EXPECT_EQ(options.min_batch_size, 2);
  EXPECT_EQ(options.max_batch_size, 64);
  EXPECT_EQ(options.min_lq_size, 32);
  EXPECT_EQ(options.max_lq_size, 256);
  EXPECT_EQ(options.vram_history_size, 50);
  EXPECT_EQ(options.max_adjustments, 100);
}

TEST(DualOptimizerYaml, ReadsTheAdvancedExample) {
  const DualOptimizerOptions options = example("dual-optimizer-advanced.yaml");
  EXPECT_EQ(options.target_vram_usage, 0.80);
  EXPECT_EQ(options.safety_margin, 0.10);
  EXPECT_EQ(options.adjustment_frequency, 50);
  EXPECT_EQ(options.max_batch_size, 32);
  EXPECT_EQ(options.min_lq_size, 64);
  EXPECT_EQ(options.max_lq_size, 192);
  EXPECT_EQ(options.vram_history_size, 100);
  EXPECT_EQ(options.max_adjustments, 50);
}

// A configuration from before lq was moved: the newer keys take their defaults.
TEST(DualOptimizerYaml, ReadsAnOlderConfiguration) {
  const auto options = parse_dual_optimizer(read(
      "training_automations:\n  DynamicBatchSizeOptimizer:\n    enabled: true\n    target_vram_usage: 0.85\n"
      "    min_batch_size: 1\n    max_batch_size: 32\n"));
  EXPECT_EQ(options.min_batch_size, 1);
  EXPECT_EQ(options.max_batch_size, 32);
  EXPECT_EQ(options.min_lq_size, 32);
  EXPECT_EQ(options.max_lq_size, 256);
}

TEST(DualOptimizerYaml, EitherSwitchTurnsItOff) {
  const auto enabled = [](const std::string& outer, const std::string& inner) {
    return parse_dual_optimizer(read("training_automations:\n  enabled: " + outer +
                                     "\n  DynamicBatchSizeOptimizer: {enabled: " + inner + "}\n"))
        .enabled;
  };
  EXPECT_TRUE(enabled("true", "true"));
  EXPECT_FALSE(enabled("false", "true"));
  EXPECT_FALSE(enabled("true", "false"));
  EXPECT_FALSE(enabled("no", "yes"));

  Rig rig("dual-optimizer", "blind",
          read("training_automations: {enabled: false, DynamicBatchSizeOptimizer: {enabled: true}}"),
          {8, 96});
  EXPECT_FALSE(rig.steps(250, 0.1).moved);
}

TEST(DualOptimizerYaml, LeavesTheRestOfTheFileAlone) {
  const OptionMap map = read(
      "name: run\ntrain: {lr: [1, 2]}\ntraining_automations:\n  LearningRate: {enabled: false}\n"
      "  DynamicBatchSizeOptimizer:\n    safety_margin: 0.1\n");
  ASSERT_EQ(map.entries().size(), 1u);
  EXPECT_EQ(map.entries()[0], (OptionEntry{"safety_margin", 0.1, "train.yml:6"}));
}

// JSON is YAML too.
TEST(DualOptimizerYaml, ReadsJson) {
  const OptionMap map = read(
      R"({"training_automations": {"DynamicBatchSizeOptimizer": {"enabled": false, "target_vram_usage": 0.8}}})");
  EXPECT_EQ(map.find("enabled")->value, OptionValue(false));
  EXPECT_EQ(map.find("target_vram_usage")->value, OptionValue(0.8));
}

TEST(DualOptimizerYaml, KindsOfValues) {
  const OptionMap map = read(
      "training_automations: {DynamicBatchSizeOptimizer: {a: true, b: 7, c: .5, d: word, e: '7', f: "
      "\"true\"}}");
  std::vector<OptionValue> values;
  for (const OptionEntry& entry : map.entries()) values.push_back(entry.value);
  EXPECT_THAT(values, ElementsAre(OptionValue(true), OptionValue(std::int64_t{7}), OptionValue(0.5),
                                  OptionValue(std::string("word")), OptionValue(std::string("7")),
                                  OptionValue(std::string("true"))));
}

TEST(DualOptimizerYaml, ProblemsNameFileAndLine) {
  const std::string head = "training_automations:\n  DynamicBatchSizeOptimizer:\n";
  EXPECT_THAT(
      problems_of(head + "    target_vram_usage: 1.2\n    saftey_margin: 0.1\n    min_batch_size: two\n"),
      ElementsAre(Problem{"train.yml:3", "1.2 is out of range. Allowed: 0.01 to 1."},
                  Problem{"train.yml:4",
                          "unknown key \"saftey_margin\". Did you mean \"safety_margin\"? (vramlab "
                          "policies dual-optimizer lists all keys)"},
                  Problem{"train.yml:5", "\"two\" does not fit: a whole number is needed (1 to 1000000)."}));
  EXPECT_THAT(problems_of(head + "    min_batch_size: 8\n    max_batch_size: 4\n"),
              ElementsAre(Problem{"train.yml:3", "min_batch_size 8 is above max_batch_size 4."}));
  EXPECT_THAT(problems_of(head + "    safety_margin: 0.1\n    safety_margin: 0.2\n    min_lq_size: [1, 2]\n"),
              ElementsAre(Problem{"train.yml:4", "\"safety_margin\" is given twice. Keep one."},
                          Problem{"train.yml:5", "\"min_lq_size\" has no single value. Write KEY: VALUE."}));
}

TEST(DualOptimizerYaml, WhatIsNoConfigurationIsRefused) {
  EXPECT_THAT(problems_of("a: [1, 2\n").at(0).what, HasSubstr("this is not YAML"));
  EXPECT_THAT(problems_of("").at(0).what, HasSubstr("no section \"training_automations\""));
  EXPECT_THAT(problems_of("[1, 2]").at(0).what, HasSubstr("no section \"training_automations\""));
  EXPECT_THAT(problems_of("training_automations: {}").at(0).what,
              HasSubstr("no section \"DynamicBatchSizeOptimizer\""));
  EXPECT_THAT(problems_of("training_automations: 3").at(0).what, HasSubstr("is not a section of keys"));
  EXPECT_THAT(problems_of("training_automations: {enabled: 3, DynamicBatchSizeOptimizer: {}}").at(0).what,
              HasSubstr("must be true or false"));
  EXPECT_THROW(load_dual_optimizer_yaml("no/such/file.yml"), InputError);
}

}  // namespace
}  // namespace vramlab
