#include "recordings/snapshot/marks.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

TEST(MarksFile, ReadsScalarsListsAndOneMicroBatch) {
  const auto marks = parse_marks_file(R"({"marks": [
    {"t_us": 5, "phase": "other", "label": "built", "params": {}},
    {"t_us": 9, "phase": "step", "label": "a", "oom": true,
     "params": {"T1": 1, "tasks": ["T1"], "micro_batches": [{"text_lengths": [71], "padded_length": 120}]}}]})",
                                      "m.json");
  ASSERT_EQ(marks.size(), 2U);
  EXPECT_FALSE(marks[0].is_step);
  EXPECT_TRUE(marks[1].is_step && marks[1].oom);
  EXPECT_EQ(marks[1].parameters.scalars.at("padded_length"), 120);
  EXPECT_EQ(marks[1].parameters.lists.at("text_lengths"), std::vector<std::int64_t>{71});
  EXPECT_EQ(marks[1].parameters.words.at("tasks"), std::vector<std::string>{"T1"});
}

void expect_error(const char* text, const std::string& part) {
  try {
    parse_marks_file(text, "m.json");
    ADD_FAILURE() << text << " was read";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(MarksFile, SaysWhereItIsWrong) {
  expect_error("{", "m.json: byte");
  expect_error("[]", "/marks");
  expect_error(R"({"marks": [{}]})", "/marks/0/t_us");
  expect_error(R"({"marks": [{"t_us": 2}, {"t_us": 1}]})", "earlier than the mark before it");
  expect_error(R"({"marks": [{"t_us": 2, "phase": "train"}]})", "\"train\" is not known");
  expect_error(R"({"marks": [{"t_us": 2, "params": {"batch": -1}}]})", "/marks/0/params/batch: is negative");
  expect_error(R"({"marks": [{"t_us": 2, "params": {"batch": 1.5}}]})", "must be a whole number");
  expect_error(R"({"marks": [{"t_us": 2, "params": {"micro_batches": [{}, {}]}}]})", "has 2 entries");
}

}  // namespace
}  // namespace vramlab
