#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/lab/scenario_rig.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    read_training(parse_document(text, "small.json"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string error_after(const std::string& from, const std::string& to) {
  return error_of(bent_scenario(from, to));
}

TEST(Scenario, ReadsWhatItSays) {
  const TrainingScenario scenario = read_training(parse_document(bent_scenario(), "small.json"));
  EXPECT_EQ(scenario.name, "small");
  EXPECT_EQ(scenario.setup.iterations, 100);
  EXPECT_EQ(scenario.setup.start, Point{8});
  EXPECT_EQ(scenario.setup.process.card_total, 10000_MiB);
  ASSERT_EQ(scenario.policies.size(), 2u);
  EXPECT_EQ(scenario.policies[1].label, "rule");
}

TEST(Scenario, AllowsComments) {
  EXPECT_EQ(error_after("\"version\"", "// how a step grows\n\"version\""), "");
}

TEST(Scenario, GivesItsTargetToPoliciesThatHaveNone) {
  const TrainingScenario scenario =
      read_training(parse_document(bent_scenario("\"usage\": 0.85", "\"usage\": 0.7"), "small.json"));
  const OptionEntry* target = scenario.policies[1].choice.options.find("target_vram_usage");
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(std::get<double>(target->value), 0.7);
  EXPECT_TRUE(scenario.policies[0].choice.options.empty());  // fixed has no such option
}

/// One fault, and what the message must hold: its place, what was found, the remedy.
struct Fault {
  const char* name;
  const char* from;
  const char* to;
  const char* where;
  const char* what;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.to; }

class BadScenario : public testing::TestWithParam<Fault> {};

TEST_P(BadScenario, IsRefusedInOneClearLine) {
  const std::string error = error_after(GetParam().from, GetParam().to);
  EXPECT_THAT(error, testing::StartsWith("small.json: "));
  EXPECT_THAT(error, HasSubstr(GetParam().where));
  EXPECT_THAT(error, HasSubstr(GetParam().what));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 0) << error;
}

INSTANTIATE_TEST_SUITE_P(
    Faults, BadScenario,
    testing::Values(
        Fault{"UnknownKey", "\"iterations\"", "\"itertions\": 5, \"iterations\"",
              "/workload/itertions:", "Did you mean \"iterations\"?"},
        Fault{"WrongUnit", "\"10000MiB\"", "\"12 gigs\"",
              "/device/total:", "\"12 gigs\" is not a size. Write 12GiB, 12288MiB or a number of bytes."},
        Fault{"NegativeSize", "\"10000MiB\"", "-5", "/device/total:", "-5 is not a size."},
        Fault{"NegativeSizeText", "\"10000MiB\"", "\"-5GiB\"", "/device/total:", "is not a size."},
        Fault{"MinAboveMax", "\"start\": {\"batch\": 8}",
              "\"start\": {\"batch\": 8}, \"bounds\": {\"batch\": [9, 4]}",
              "/workload/bounds/batch:", "the smallest value 9 is above the largest, 4."},
        Fault{"UnknownPolicy", "\"threshold-step\"", "\"treshold-step\"",
              "/policies/1/use:", "Did you mean \"threshold-step\"?"},
        Fault{"UnknownOption", "\"step\": 2", "\"stepp\": 2", "/policies/1/stepp:", "Did you mean \"step\"?"},
        Fault{"UnknownProfile", "\"use\": \"fixed\"",
              "\"use\": \"dual-optimizer\", \"label\": \"fixed\", \"profile\": \"peek\"",
              "/policies/0/profile:", "Did you mean \"peak\"?"},
        Fault{"OptionOutOfRange", "\"step\": 2", "\"step\": 0", "/policies/1/step:", "1 to"},
        Fault{"TargetOverOne", "\"usage\": 0.85", "\"usage\": 1.2",
              "/target/usage:", "1.2 is out of range; allowed is from 0.01 to 1."},
        Fault{"BandOverOne", "\"usage\": 0.85", "\"usage\": 0.98",
              "/target:", "usage plus margin is above 1"},
        Fault{"PolicyTargetOverOne", "\"step\": 2", "\"target_vram_usage\": 1.5",
              "/policies/1/target_vram_usage:", "1.5"},
        Fault{"WrongKind", "\"training\"", "\"trainning\"", "/kind:", "Did you mean \"training\"?"},
        Fault{"NewerVersion", "\"version\": 1", "\"version\": 2", "/version:", "out of range"},
        Fault{"TextForNumber", "\"iterations\": 100", "\"iterations\": \"many\"",
              "/workload/iterations:", "found \"many\", needed is a whole number from 1 to"},
        Fault{"MissingModelFile",
              R"({"kind": "linear", "fixed": "1000MiB", "per_sample": "810MiB", "resident": "20MiB",
              "parameters": {"batch": [2, 64]}, "step_time": {"floor_ms": 100}})",
              "\"no-such.json\"", "/workload/model:", "there is no model file \"no-such.json\""},
        Fault{"UnknownModelKind", "\"kind\": \"linear\"", "\"kind\": \"linaer\"", "/workload/model",
              "Did you mean \"linear\"?"},
        Fault{"StartOutOfBounds", "\"batch\": 8", "\"batch\": 80",
              "/workload/start/batch:", "allowed is 2 to 64"},
        Fault{"StartOfAnotherParameter", "\"batch\": 8", "\"batch\": 8, \"lq\": 64",
              "/workload/start/lq:", "no parameter \"lq\""},
        Fault{"UnknownGpu", "\"total\": \"10000MiB\", \"context\": 0", "\"gpu\": \"rtx-3061\"",
              "/device/gpu:", "rtx-3060-12gb"},
        Fault{"TwoCards", "\"context\": 0", "\"gpu\": \"t4-16gb\"", "/device:", "give one of"},
        Fault{"ContextLargerThanCard", "\"context\": 0", "\"context\": \"20GiB\"",
              "/device/context:", "larger than the card"},
        Fault{"LimitAboveTheCard", "\"context\": 0", "\"limit\": \"40000MiB\"", "/device/limit:",
              "a limit of 39.1 GiB is more than the 9.8 GiB of the card. Allowed is up to 10485760000 bytes"},
        Fault{"LimitAboveAnotherCard", "\"workload\": {",
              "\"more_devices\": [{\"total\": \"2GiB\", \"limit\": \"3GiB\"}], \"workload\": {",
              "/more_devices/0/limit:", "a limit of 3.0 GiB is more than the 2.0 GiB of the card"},
        Fault{"BadAllocatorSettings", "\"workload\": {",
              "\"allocator\": {\"conf\": \"max_split_size_mb:2\"}, \"workload\": {",
              "/allocator/conf:", "max_split_size_mb"},
        Fault{"LabelTwice", "\"label\": \"rule\"", "\"label\": \"fixed\"",
              "/policies/1:", "the label \"fixed\" is taken"},
        Fault{"ExpectationOfNobody", "\"policy\": \"fixed\"", "\"policy\": \"fixd\"",
              "/expect/0/policy:", "Did you mean \"fixed\"?"},
        Fault{"ExpectationOfNoMetric", "\"metric\": \"ooms\"", "\"metric\": \"oom\"",
              "/expect/0/metric:", "Did you mean \"ooms\"?"},
        Fault{"ExpectationOfNothing", ", \"equals\": 0", "", "/expect/0:", "nothing is expected"},
        Fault{"LineBreakInALabel", "\"label\": \"rule\"", "\"label\": \"a\\n!touch x\"",
              "/policies/1/label:", "without line breaks"},
        Fault{"NumberBeyondADouble", "\"iterations\": 100", "\"iterations\": 1e400", "", "cannot be read"},
        Fault{"NumberBeyond64Bits", "\"iterations\": 100", "\"iterations\": 18446744073709551615",
              "/workload/iterations:", "a whole number from 1 to 1000000"},
        Fault{"SizeOfAModelBeyondAnyCard", "\"810MiB\"", "18446744073709551615",
              "/workload/model/per_sample:", "is out of range"},
        Fault{"ModelThatBlursItsLine", "\"810MiB\"", "\"1MiB\"", "/workload/model/:", "at least 12 MiB"},
        Fault{"PolicyForAnotherParameter", "\"step\": 2", "\"parameter\": \"lqq\"", "/policies/1", "lqq"},
        Fault{"UnknownSearcher", "\"step\": 2", "\"after_search\": {\"use\": \"binserch\"}",
              "/policies/1/after_search/use:", "Did you mean \"binsearch\"?"},
        Fault{"SearchBeyondTheBounds", "\"step\": 2",
              "\"after_search\": {\"use\": \"binsearch\", \"high\": 65}",
              "/policies/1/after_search/high:", "allowed is 2 to 64"},
        Fault{"SearchReversed", "\"step\": 2",
              "\"after_search\": {\"use\": \"binsearch\", \"low\": 9, \"high\": 4}",
              "/policies/1/after_search/high:", "is below \"low\", 9"},
        Fault{"MisspeltSearch", "\"step\": 2", "\"after_serch\": {\"use\": \"binsearch\"}",
              "/policies/1/after_serch:", "Did you mean \"after_search\"?"},
        Fault{"SearchOption", "\"step\": 2", "\"after_search\": {\"use\": \"binsearch\", \"initt\": 9}",
              "/policies/1/after_search/initt:", "Did you mean \"init\"?"},
        Fault{"ToleranceOfNothing", "\"equals\": 0", "\"max\": 0, \"tolerance\": 1",
              "/expect/0/tolerance:", "equals"},
        Fault{"KeyTwice", "\"name\": \"small\"", "\"name\": \"small\", \"name\": \"large\"", "",
              "key \"name\" is given twice"}),
    [](const auto& fault) { return fault.param.name; });

TEST(Scenario, ReportsEveryProblemAtOnce) {
  std::string text = bent_scenario("\"iterations\": 100", "\"iterations\": 0");
  text.replace(text.find("\"10000MiB\""), 10, "\"12 gigs\"");
  const std::string error = error_of(text);
  EXPECT_THAT(error, HasSubstr("/workload/iterations"));
  EXPECT_THAT(error, HasSubstr("/device/total"));
}

TEST(Scenario, SaysThatTheWorkloadIsMissing) {
  const std::string error = error_of(
      R"({"version": 1, "kind": "training", "name": "x", "device": {"total": "1GiB"}, "policies": [{"use": "fixed"}]})");
  EXPECT_EQ(error, "small.json: /: \"workload\" is missing: what is trained");
}

TEST(Scenario, SaysWhereATruncatedFileEnds) {
  const std::string whole = bent_scenario();
  const std::string error = error_of(whole.substr(0, whole.find("\"parameters\"")));
  EXPECT_THAT(error, HasSubstr("small.json: line 7, column 15"));
  EXPECT_THAT(error, HasSubstr("this is not JSON"));
}

// However the file is cut, the answer is an InputError and never a crash.
TEST(Scenario, EveryTruncationIsRefused) {
  const std::string whole = bent_scenario();
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    EXPECT_THROW(read_training(parse_document(whole.substr(0, size), "small.json")), InputError) << size;
  }
}

TEST(Scenario, DeepNestingIsRefused) {
  EXPECT_THAT(error_of(std::string(100000, '[') + std::string(100000, ']')),
              HasSubstr("nested deeper than 64"));
}

TEST(Scenario, MissingFilesAndFoldersAreNamed) {
  const auto error_of_file = [](const char* file) {
    try {
      read_training(read_document(file));
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_EQ(error_of_file("no/such/file.json"), "no/such/file.json: does not exist.");
  EXPECT_EQ(error_of_file("."), ".: is a folder; a file is needed.");
}

// Not beside `set` of the same parameter, at least once, and of a parameter that there is.
TEST(Scenario, APhaseMayFollowTraining) {
  const auto with = [](const std::string& phase) {
    return bent_scenario(
        "\"iterations\": 100,",
        "\"iterations\": 100, \"phases\": [{\"name\": \"v\", \"every\": 10, " + phase + "}],");
  };
  const TrainingScenario scenario =
      read_training(parse_document(with("\"follow\": {\"batch\": 4}"), "small.json"));
  EXPECT_EQ(scenario.setup.phases.at(0).follow, Point{4});
  for (const char* bad : {"\"follow\": {\"batch\": 0}", "\"follow\": {\"lq\": 4}",
                          "\"set\": {\"batch\": 2}, \"follow\": {\"batch\": 4}"}) {
    EXPECT_THROW(read_training(parse_document(with(bad), "small.json")), InputError) << bad;
  }
}

TEST(Scenario, APhaseMayBeMovedByATunerOfItsOwn) {
  const auto with = [](const std::string& phase) {
    return bent_scenario(
        "\"iterations\": 100,",
        "\"iterations\": 100, \"phases\": [{\"name\": \"v\", \"every\": 10, " + phase + "}],");
  };
  const TrainingScenario scenario =
      read_training(parse_document(with(R"("set": {"batch": 9}, "move": {"batch": [2, 12]})"), "small.json"));
  ASSERT_EQ(scenario.setup.moved_phases.size(), 1u);
  const MovedPhase& moved = scenario.setup.moved_phases[0];
  EXPECT_EQ(moved.phase, 0u);
  EXPECT_EQ(moved.bounds.parameters[0], (Parameter{"batch", 2, 12}));
  EXPECT_EQ(moved.make_tuner()->statistics().front().name, "current_batch");  // of predictive, the default
  EXPECT_EQ(find_moved_parameter(scenario.setup, "v.batch"), std::pair(std::size_t{0}, std::size_t{0}));
  EXPECT_FALSE(find_moved_parameter(scenario.setup, "v.lq"));
  const auto refused = [&](const char* phase, const char* what) {
    EXPECT_THAT(error_of(with(phase)), HasSubstr(what));
  };
  refused(R"("set": {"batch": 9}, "move": {"batch": [2, 8]})",
          "/workload/phases/0/move/batch: the phase begins at 9, which lies outside");
  refused(R"("move": {"lq": [2, 8]})", "/workload/phases/0/move/lq");
  refused(R"("follow": {"batch": 2}, "move": {"batch": [2, 12]})", "\"follow\" exclude each other");
  refused(R"("policy": {"use": "predictive"})", "/workload/phases/0/policy: has nothing to move");
  refused(R"("move": {"batch": [1, 12]}, "policy": {"use": "aimd", "steep": 1})",
          "/workload/phases/0/policy/steep");
}

TEST(Scenario, TheFormerNameOfTheSumOfPixelsIsRead) {
  for (const char* name : {"pixels", "lq-then-batch"}) {
    const TrainingScenario scenario = read_training(
        parse_document(bent_scenario("\"samples_per_s\"", "\"" + std::string{name} + "\""), "small.json"));
    EXPECT_EQ(objective_name(scenario.objective), "pixels");
  }
}

}  // namespace
}  // namespace vramlab
