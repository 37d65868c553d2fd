#include "lab/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_json(text, "a.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(JsonText, SaysLineAndColumnOfAFault) {
  EXPECT_THAT(error_of("{\n  \"a\": 1,\n  \"b\" 2\n}"),
              testing::StartsWith("a.json: line 3, column 7: this is not JSON: "));
}

TEST(JsonText, NamesAnEmptyFile) {
  EXPECT_EQ(error_of(""), "a.json: the file is empty.");
  EXPECT_EQ(error_of(" \n"), "a.json: the file is empty.");
}

TEST(JsonText, RefusesAKeyGivenTwiceInOneObjectOnly) {
  EXPECT_EQ(error_of(R"({"a": {"b": 1}, "c": {"b": 2}})"), "");
  EXPECT_EQ(error_of(R"({"a": {"b": 1, "b": 2}})"),
            "a.json: key \"b\" is given twice in one object. Keep one of them.");
}

TEST(JsonText, KeepsTheOrderOfTheFile) {
  EXPECT_EQ(parse_json(R"({"z": 1, "a": 2})", "a.json").dump(), R"({"z":1,"a":2})");
}

}  // namespace
}  // namespace vramlab
