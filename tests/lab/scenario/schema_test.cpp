// Every scenario that is shipped is valid by the schema, and what the schema forbids is refused.
#include "lab/scenario/schema.hpp"

#include <filesystem>

#include <gtest/gtest.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "lab/kinds/training/spec.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

using PlainJson = nlohmann::json;

PlainJson plain(const Json& json) { return PlainJson::parse(json.dump()); }

bool is_valid(const PlainJson& document) {
  const PlainJson schema_json = plain(scenario_schema());
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter{schema_json}, schema);
  valijson::Validator validator;
  return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter{document}, nullptr);
}

TEST(Schema, AcceptsEveryScenario) {
  int seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{VRAMLAB_SOURCE_DIR "/scenarios"}) {
    if (entry.path().extension() != ".json" || entry.path().filename() == "schema.json") continue;
    EXPECT_TRUE(is_valid(plain(read_json_file(entry.path())))) << entry.path();
    ++seen;
  }
  EXPECT_GE(seen, 9);
}

TEST(Schema, RefusesWhatTheReaderRefuses) {
  const PlainJson good = plain(read_json_file(VRAMLAB_SOURCE_DIR "/scenarios/ratchet.json"));
  PlainJson unknown_key = good;
  unknown_key["policies"][1]["profle"] = "peak";
  EXPECT_FALSE(is_valid(unknown_key));
  PlainJson no_workload = good;
  no_workload.erase("workload");
  EXPECT_FALSE(is_valid(no_workload));
  PlainJson target_over_one = good;
  target_over_one["target"]["usage"] = 1.2;
  EXPECT_FALSE(is_valid(target_over_one));
}

TEST(Schema, TheShippedFileIsTheOneTheProgramPrints) {
  EXPECT_EQ(read_input_file(VRAMLAB_SOURCE_DIR "/scenarios/schema.json"), scenario_schema().dump(2) + '\n')
      << "run: build/release/vramlab schema -o scenarios/schema.json";
}

}  // namespace
}  // namespace vramlab
