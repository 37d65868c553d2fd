#include <gmock/gmock.h>

#include "lab/model/file.hpp"
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

}  // namespace
}  // namespace vramlab
