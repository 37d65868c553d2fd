// vramlab plan as people use it.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/json.hpp"
#include "recordings/input_file.hpp"
#include "tests/cli/program_run.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kAboveLoad = VRAMLAB_SOURCE_DIR "/tests/data/plan/above-load.csv";
const std::string kRack = VRAMLAB_SOURCE_DIR "/tests/data/plan/rack.csv";
const std::string kBert = VRAMLAB_SOURCE_DIR "/tests/data/recorded/bert.pickle.gz";

TEST(PlanCli, PlansAListOfBuffers) {
  const Ran ran = run_program("plan '" + kAboveLoad + "'");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("6 bytes are the least: there is a plan, and no other needs less.\n"));
}

TEST(PlanCli, GivesItsFiguresAsJson) {
  const Ran ran = run_program("plan '" + kAboveLoad + "' '" + kBert + "' --json -");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  ASSERT_EQ(json["plans"].size(), 2U);
  EXPECT_EQ(json["plans"][0]["load_bytes"], 5);
  EXPECT_EQ(json["plans"][0]["bound_bytes"], 6);
  EXPECT_EQ(json["plans"][0]["planned_bytes"], 6);
  EXPECT_EQ(json["plans"][0]["certified"], true);
  EXPECT_TRUE(json["plans"][0]["seconds"].is_number());
  EXPECT_TRUE(json["plans"][0]["recorded_reserved_bytes"].is_null());
  // Peak reserved of the recording by its truth file; 3,600,831,488 bytes were alive at once.
  EXPECT_EQ(json["plans"][1]["planned_bytes"], 3'600'831'488);
  EXPECT_GT(json["plans"][1]["recorded_reserved_bytes"], 3'600'831'488);
}

TEST(PlanCli, AnswersWhetherACapacityDoes) {
  EXPECT_THAT(run_program("plan '" + kAboveLoad + "' --capacity 6").out,
              StartsWith("Fits in 6 bytes: a plan needs 6.\n"));
  EXPECT_THAT(run_program("plan '" + kAboveLoad + "' --capacity 5").out,
              StartsWith("Does not fit in 5 bytes: no plan needs less than 6.\n"));
  const Ran wrong = run_program("plan '" + kAboveLoad + "' --capacity much");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("\"much\" is not a size"));
}

TEST(PlanCli, WritesAPlanThatItAcceptsItself) {
  const ScratchFolder scratch;
  ASSERT_EQ(run_program("plan '" + kAboveLoad + "' -o plan.csv", scratch).code, 0);
  EXPECT_THAT(read_input_file(scratch.file("plan.csv")), StartsWith("id,lower,upper,size,offset\na,0,1,3,"));
  EXPECT_THAT(run_program("plan plan.csv", scratch).out,
              HasSubstr("The offsets of plan.csv are a sound plan that needs 6 bytes.\n"));
}

TEST(PlanCli, TellsWhatIsWrongWithAPlan) {
  const Ran sound = run_program("plan '" + kRack + "'");
  EXPECT_EQ(sound.code, 0) << sound.err;
  EXPECT_THAT(sound.out, HasSubstr("are a sound plan that needs 6 bytes."));
  const ScratchFolder scratch;
  std::ofstream(scratch.file("p.csv")) << "id,lower,upper,size,offset\na,0,2,4,0\nb,1,3,4,2\n";
  const Ran wrong = run_program("plan p.csv", scratch);
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(
      wrong.out,
      HasSubstr("The offsets of p.csv are no plan: buffers a and b live at once and share memory.\n"));
}

TEST(PlanCli, SaysInItsJsonWhetherAGivenPlanIsSound) {
  const Ran sound = run_program("plan '" + kRack + "' --json -");
  ASSERT_EQ(sound.code, 0) << sound.err;
  EXPECT_EQ(Json::parse(sound.out)["given_plan"],
            (Json{{"sound", true}, {"needs_bytes", 6}, {"faults", Json::array()}}));
  const ScratchFolder scratch;
  std::ofstream(scratch.file("p.csv")) << "id,lower,upper,size,offset\na,0,2,4,0\nb,1,3,4,2\n";
  const Ran wrong = run_program("plan p.csv --json -", scratch);
  EXPECT_EQ(wrong.code, 1);
  const Json given = Json::parse(wrong.out)["plans"][0]["given_plan"];
  EXPECT_EQ(given["sound"], false);
  EXPECT_EQ(given["needs_bytes"], nullptr);
  EXPECT_EQ(given["faults"], Json::array({"buffers a and b live at once and share memory"}));
  EXPECT_EQ(Json::parse(run_program("plan '" + kAboveLoad + "' --json -").out)["given_plan"], nullptr);
}

TEST(PlanCli, WritesThePlanOfOneProgramOnly) {
  const ScratchFolder scratch;
  const Ran ran = run_program("plan '" + kAboveLoad + "' '" + kRack + "' -o plan.csv", scratch);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--output: takes the plan of one program; these are 2."));
}

TEST(PlanCli, SaysTheSameEveryTimeButForItsSeconds) {
  const auto figures = [] {
    Json json = Json::parse(run_program("plan '" + kBert + "' --json -").out);
    json.erase("seconds");
    json["plans"][0].erase("seconds");
    return json;
  };
  EXPECT_EQ(figures(), figures());
}

}  // namespace
}  // namespace vramlab
