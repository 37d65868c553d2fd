#include <array>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>

#include "lab/model/file.hpp"
#include "lab/model/measured_grid.hpp"
#include "models/measured.hpp"
#include "models/super_resolution.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kFile = std::string(VRAMLAB_SOURCE_DIR) + "/models/superres-rrdb6.json";

std::vector<Problem> problems_of(const Json& json) {
  try {
    parse_model(json, "m.json: ");
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

auto problem(const std::string& where, const std::string& what) {
  return testing::AllOf(Field(&Problem::where, where), Field(&Problem::what, HasSubstr(what)));
}

TEST(ModelFile, ReadsTheSuperResolutionModel) {
  const auto model = load_model_file(kFile);
  EXPECT_EQ(model->parameters().parameters, (std::vector<Parameter>{{"batch", 1, 64}, {"lq", 32, 256}}));
  const auto& spec = dynamic_cast<const SuperResolution&>(*model).spec();
  EXPECT_EQ(spec.name, "superres-rrdb6");
  EXPECT_EQ(spec.workspace_refusals, 21U);
  EXPECT_EQ(spec.dense.size(), 5U);
  EXPECT_DOUBLE_EQ(spec.time.floor_seconds, 0.0363);
  EXPECT_EQ(spec.last.input_gradient.at(0).pad_channels, 4);
}

TEST(ModelFile, ReadsALinearModel) {
  const Json json = parse_json(R"({"kind": "linear", "fixed": "1GiB", "per_sample": "100MiB",
                                   "parameters": {"batch": [1, 20]}, "step_time": {"base_ms": 40}})",
                               "m.json");
  const auto model = parse_model(json, "m.json: ");
  EXPECT_EQ(model->parameters().parameters, (std::vector<Parameter>{{"batch", 1, 20}}));
  EXPECT_EQ(model->step({3}).duration, from_seconds(0.04));
}

TEST(ModelFile, SuggestsTheKind) {
  EXPECT_THAT(problems_of(Json{{"kind", "super-resolutoin"}}),
              ElementsAre(problem("m.json: /kind", "Did you mean \"super-resolution\"?")));
  EXPECT_THAT(problems_of(Json::object()), ElementsAre(problem("m.json: /kind", "Known: super-resolution")));
}

TEST(ModelFile, ReportsEveryWrongKeyAtOnce) {
  Json json = read_json_file(kFile);
  json["architecture"]["grwoth"] = 16;
  json["workspaces"]["last"]["forward"][0]["copies"] = "inptu";
  json["step_time"]["floor_ms"] = "fast";
  EXPECT_THAT(problems_of(json),
              testing::UnorderedElementsAre(
                  problem("m.json: /architecture/grwoth", "Did you mean \"growth\"?"),
                  problem("m.json: /workspaces/last/forward/0/copies", "Did you mean \"input\"?"),
                  problem("m.json: /step_time/floor_ms", "a number")));
}

TEST(ModelFile, ReportsWhatOnlyTheWholeShows) {
  Json json = read_json_file(kFile);
  json["workspaces"]["dense"].erase(4);
  json["workspaces"]["dense"][0]["forward"][0]["where"]["pixel"] = Json::array({1, 2});
  json["parameters"]["lp"] = json["parameters"]["lq"];
  json["parameters"].erase("lq");
  EXPECT_THAT(problems_of(json),
              testing::UnorderedElementsAre(
                  problem("m.json: /workspaces/dense", "4 entries"),
                  problem("m.json: /workspaces/dense/0/forward/0/where/pixel", "Did you mean \"pixels\"?"),
                  problem("m.json: /parameters/lp", "Did you mean \"lq\"?"),
                  problem("m.json: /parameters", "\"lq\" is missing")));
  EXPECT_THAT(problems_of(read_json_file(kFile)), IsEmpty());
}

Json measured(const char* points) { return Json{{"kind", "measured"}, {"points", Json::parse(points)}}; }

// The last allocation of a step, which has one.
Bytes block_of(const WorkloadModel& model, const Point& point) { return model.step(point).ops.front().size; }

// 1,000 MiB at 2 and 1,600 MiB at 5 are 200 MiB a sample; 2,400 MiB at 9 as much, and 4,000 MiB at 13 are
// 400.
// Calls `visit` with every number that lies in `json`.
void for_each_number(Json& json, const std::function<void(Json&)>& visit) {
  if (json.is_number()) return visit(json);
  if (!json.is_structured()) return;
  for (Json& part : json) for_each_number(part, visit);
}

// What the number would be after a conversion of the library: 0 for 2^32 in 32 bits, 1 for true.
TEST(RecordedModelFile, RefusesWhatANumberCannotBeWhereverItStands) {
  Json json = read_json_file(std::string(VRAMLAB_SOURCE_DIR) + "/models/lstm.json");
  json.erase("card");
  std::size_t numbers = 0;
  for_each_number(json, [&](Json& number) {
    ++numbers;
    const Json right = number;
    for (const Json& wrong : {Json(INT64_MIN), Json(nullptr), Json(1e300), Json(true), Json(1u << 31)}) {
      number = wrong;
      try {
        const auto model = parse_model(json, "m.json: ");
        if (wrong == Json(1u << 31)) {  // some may be as large; the step is then one, or said to be none
          Point point;
          for (const Parameter& one : model->parameters().parameters) point.push_back(one.low);
          static_cast<void>(model->step(point));
        } else {
          ADD_FAILURE() << "number " << numbers << ", " << right << ", is read as " << wrong;
        }
      } catch (const InputError&) {
      }
    }
    number = right;
  });
  EXPECT_GT(numbers, 300U);
}

TEST(RecordedModelFile, SaysWhereANumberIsWrong) {
  Json json = read_json_file(std::string(VRAMLAB_SOURCE_DIR) + "/models/lstm.json");
  json["step_time"]["base_ms"] = nullptr;
  EXPECT_THAT(problems_of(json),
              ElementsAre(problem("m.json: /step_time/base_ms", "found null, needed is a number.")));
  json["step_time"]["base_ms"] = -1;
  EXPECT_THAT(problems_of(json), ElementsAre(problem("m.json: /step_time/base_ms", "found -1")));
  json["step_time"]["base_ms"] = 1;
  json["data"]["groups"][0][2] = std::int64_t{1} << 32;
  EXPECT_THAT(problems_of(json),
              ElementsAre(problem("m.json: /data/groups", "found 4294967296, needed is a whole")));
}

// A grid of two points, with one value replaced.
std::string problem_of_grid(const std::string& from, const std::string& to) {
  std::string text =
      R"({"total_memory": 1000000000, "rows": [{"batch": 4, "seq": 32, "base": 100, "peak_allocated": 2000,
      "peak_reserved": 3000, "step_ms": [1.5, 2]}, {"batch": 8, "seq": 32, "ok": false}]})";
  text.replace(text.find(from), from.size(), to);
  const std::string file = testing::TempDir() + "vramlab-grid.json";
  std::ofstream{file} << text;
  try {
    replay_grid(read_grid_file(file),
                *load_model_file(std::string(VRAMLAB_SOURCE_DIR) + "/models/lstm.json"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(MeasuredGrid, RefusesNumbersOutOfRange) {
  EXPECT_EQ(problem_of_grid("1.5", "1.5"), "none");
  for (const auto& [from, to, message] :
       {std::array{"1000000000", "-1", "/total_memory: found -1"},
        std::array{"1000000000", "2e9", "/total_memory: found 2000000000.0, needed is a whole number"},
        std::array{"2000", "-2000", "/rows/0/peak_allocated: found -2000"},
        std::array{"3000", "1000000001",
                   "/rows/0/peak_reserved: found 1000000001, needed is a whole number from 1 to "
                   "1000000000"},
        std::array{"\"base\": 100", "\"base\": null", "/rows/0/base: found null"},
        std::array{"1.5", "-1.5", "/rows/0/step_ms: -1.5 is out of range"},
        std::array{"1.5", "null", "/rows/0/step_ms: found null"},
        std::array{"false", "0", "/rows/1/ok: found 0, needed is true or false"},
        std::array{"\"batch\": 4", "\"batch\": -4", "/rows: batch: found -4"},
        std::array{"\"rows\"", "\"warm_up\": 3, \"rows\"", "/warm_up: is not a list in [ ]"},
        std::array{"\"rows\"", "\"warm_up\": [3], \"rows\"", "/warm_up: has a step that is not an object"},
        std::array{"\"batch\": 4", "\"batch\": 4.5", "/rows: batch: found 4.5"}}) {
    EXPECT_THAT(problem_of_grid(from, to), HasSubstr(message)) << to;
  }
}

TEST(MeasuredModel, InterpolatesBetweenPointsAndExtrapolatesTheNearestLine) {
  Json json =
      measured(R"([{"batch": 13, "peak_reserved": "4000MiB"}, {"batch": 2, "peak_reserved": "1000MiB"},
                           {"batch": 9, "peak_reserved": "2400MiB"}, {"batch": 5, "peak_reserved": "1600MiB"}])");
  json["resident"] = "300MiB";
  const auto model = parse_model(json, "m.json: ");
  EXPECT_EQ(model->parameters().parameters, (std::vector<Parameter>{{"batch", 1, 100000}}));
  EXPECT_FALSE(model->timed());
  ASSERT_EQ(model->build().ops.size(), 1U);
  EXPECT_EQ(model->build().ops.front().size, 300_MiB);
  ASSERT_EQ(model->step({4}).ops.size(), 2U);  // a block comes, and goes
  EXPECT_EQ(block_of(*model, {4}), 1400_MiB - 300_MiB);
  EXPECT_EQ(block_of(*model, {9}), 2400_MiB - 300_MiB);
  EXPECT_EQ(block_of(*model, {11}), 3200_MiB - 300_MiB);
  EXPECT_EQ(block_of(*model, {15}), 4800_MiB - 300_MiB);
  EXPECT_EQ(block_of(*model, {1}), 800_MiB - 300_MiB);
  const auto& points = dynamic_cast<const MeasuredModel&>(*model);
  EXPECT_TRUE(points.extrapolates({1}));
  EXPECT_FALSE(points.extrapolates({2}));
  EXPECT_FALSE(points.extrapolates({13}));
  EXPECT_TRUE(points.extrapolates({14}));
  EXPECT_EQ(points.basis(), "4 measured points, batch 2 to 13, reserved memory");
}

// At length 100 a sample takes 100 MiB, at 300 it takes 300; at 200 the mean of both lines.
TEST(MeasuredModel, HasALineForEachLength) {
  const auto model = parse_model(
      measured(R"([{"batch": 1, "length": 100, "peak_allocated": "600MiB", "peak_reserved": "1GiB"},
                   {"batch": 5, "length": 100, "peak_allocated": "1000MiB"},
                   {"batch": 1, "length": 300, "peak_allocated": "800MiB"},
                   {"batch": 3, "length": 300, "peak_allocated": "1400MiB"}])"),
      "m.json: ");
  EXPECT_EQ(model->parameters().parameters,
            (std::vector<Parameter>{{"batch", 1, 100000}, {"length", 100, 300}}));
  EXPECT_EQ(block_of(*model, {3, 100}), 800_MiB);
  EXPECT_EQ(block_of(*model, {2, 300}), 1100_MiB);
  EXPECT_EQ(block_of(*model, {2, 200}), 900_MiB);
  const auto& points = dynamic_cast<const MeasuredModel&>(*model);
  EXPECT_FALSE(points.extrapolates({3, 200}));
  EXPECT_TRUE(points.extrapolates({4, 200}));  // 300 was measured up to batch 3
  EXPECT_FALSE(points.extrapolates({4, 100}));
  EXPECT_EQ(points.basis(),
            "4 measured points, batch 1 to 5, length 100 to 300, allocated memory without fragments");
}

// 128 · 48 = 6,144 tokens, 512 · 10 = 5,120: at 256, a third of the way, 5,802.7, which 22 samples fill.
TEST(MeasuredModel, LargestBatchesAreInterpolatedInTokens) {
  const auto model =
      parse_model(measured(R"([{"length": 512, "largest_batch": 10}, {"length": 128, "largest_batch": 48}])"),
                  "m.json: ");
  const auto& batches = dynamic_cast<const LargestBatches&>(*model);
  EXPECT_EQ(batches.at(128).batch, 48);
  EXPECT_TRUE(batches.at(128).given);
  const LargestBatches::Answer between = batches.at(256);
  EXPECT_EQ(between.batch, 22);
  EXPECT_FALSE(between.given);
  EXPECT_FALSE(between.extrapolated);
  EXPECT_EQ(between.reason, "between the batches given for lengths 128 and 512: 5802 tokens");
  EXPECT_EQ(batches.at(1024).batch, 3);  // 6,144 − 1,024 · 896 / 384 = 3,754.7 tokens
  EXPECT_TRUE(batches.at(1024).extrapolated);
  EXPECT_EQ(batches.at(4096).batch, 0);  // below nothing
  EXPECT_THROW((void)model->step({1, 128}), InputError);
}

TEST(MeasuredModel, RefusesPointsThatTellNothing) {
  const auto refused = [](const char* points, const char* where, const char* what) {
    EXPECT_THAT(problems_of(measured(points)), ElementsAre(problem(std::string{"m.json: "} + where, what)))
        << points;
  };
  refused(R"([])", "/points", "has 0; two at least");
  refused(R"([{"batch": 1, "peak_reserved": "1GiB"}])", "/points", "has 1; two at least");
  refused(R"([{"batch": -1, "peak_reserved": "1GiB"}, {"batch": 2, "peak_reserved": "2GiB"}])",
          "/points/0/batch", "-1");
  refused(R"([{"batch": 1, "peak_reserved": -5}, {"batch": 2, "peak_reserved": "2GiB"}])",
          "/points/0/peak_reserved", "not a size");
  refused(R"([{"batch": 1, "peak_reserved": "nan"}, {"batch": 2, "peak_reserved": "2GiB"}])",
          "/points/0/peak_reserved", "not a size");
  refused(R"([{"batch": 1, "peak_reserved": "1GiB"}, {"batch": 1, "peak_reserved": "1GiB"}])", "/points/1",
          "batch 1 stands in point 0, too");
  refused(R"([{"batch": 1, "peak_reserved": "2GiB"}, {"batch": 2, "peak_reserved": "1GiB"}])",
          "/points/1/peak_reserved", "1.0 GiB at batch 2 is less than 2.0 GiB at batch 1");
  refused(R"([{"batch": 1, "peak_reserved": "2GiB"}, {"batch": 2, "peak_reserved": "2GiB"}])", "/points",
          "the peak is the same at the two largest batches, 1 and 2");
  refused(R"([{"batch": 1, "peak_reserved": "1GiB"}, {"batch": 2}])", "/points/1", "has no peak");
  refused(R"([{"batch": 1, "peak_reserved": "1GiB"}, {"batch": 2, "peak_allocated": "2GiB"}])",
          "/points/0/peak_allocated", "give one in all");
  refused(R"([{"batch": 1, "peak_reserved": "1GiB"}, {"batch": 2, "length": 5, "peak_reserved": "2GiB"}])",
          "/points/1/length", "in every point or in none");
  refused(
      R"([{"batch": 1, "length": 5, "peak_reserved": "1GiB"}, {"batch": 2, "length": 5, "peak_reserved": "2GiB"}])",
      "/points", "the length is the same in all points");
  refused(R"([{"batch": 1, "peak_reserved": "1GiB"}, {"length": 5, "largest_batch": 2}])", "/points/1",
          "of another sort");
  refused(R"([{"length": 5, "largest_batch": 2}, {"length": 6, "largest_batch": 3}])",
          "/points/1/largest_batch", "longer samples cannot need less");
  refused(R"([{"length": 5, "largest_batch": 2}, {"length": 5, "largest_batch": 2}])", "/points/1/length",
          "5 stands in point 0, too");
  Json json = measured(R"([{"batch": 1, "peak_reserved": "1GiB"}, {"batch": 2, "peak_reserved": "2GiB"}])");
  json["resident"] = "1GiB";
  json["parameters"] = {{"bacth", {1, 5}}};
  EXPECT_THAT(problems_of(json),
              ElementsAre(problem("m.json: /parameters/bacth", "Did you mean \"batch\"?")));
  json.erase("parameters");
  EXPECT_THAT(problems_of(json),
              ElementsAre(problem("m.json: /points/0/peak_reserved", "not above \"resident\"")));
}

}  // namespace
}  // namespace vramlab
