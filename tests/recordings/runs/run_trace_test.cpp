// Traces of runs, written and read back.
#include "recordings/runs/run_trace.hpp"

#include <fstream>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "tests/cli/scratch_folder.hpp"
#include "tests/recordings/runs/written_text.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

const ParameterSpace kSpace{{{.name = "batch", .low = 1, .high = 64}}};

IterationRecord record(std::int64_t iteration, StepResult result, bool kept) {
  IterationRecord one;
  one.iteration = iteration;
  one.start = SimTime{iteration * 1'000'000'000};
  one.duration = SimTime{500'000'000};
  one.choice = std::make_shared<StepChoice>(StepChoice{.point = {8}});
  one.result = result;
  one.memory.total = 12_GiB;
  one.step_peak_allocated = 5_GiB;
  one.kept = kept;
  return one;
}

std::vector<IterationRecord> some_records() {
  return {record(1, StepResult::ok, true), record(2, StepResult::oom, false),
          record(3, StepResult::error, false)};
}

std::string written(const ScratchFolder& folder, const std::string& name, const std::string& text) {
  const std::string file = folder.file(name);
  std::filesystem::create_directories(std::filesystem::path{file}.parent_path());
  std::ofstream{file} << text;
  return file;
}

std::string refusal(const std::string& file) {
  try {
    read_run_trace(file);
  } catch (const InputError& error) {
    return error.problems().front().where + ": " + error.problems().front().what;
  }
  return {};
}

TEST(RunTrace, TellsHowAStepEndedAndWhetherItsWorkWasKept) {
  const ScratchFolder folder;
  for (const std::string& file :
       {written(folder, "a.jsonl", text_of(write_trace_jsonl, kSpace, some_records())),
        written(folder, "a.csv", text_of(write_trace_csv, kSpace, some_records()))}) {
    const RunTrace trace = read_run_trace(file);
    EXPECT_EQ(trace.parameters, std::vector<std::string>{"batch"});
    ASSERT_EQ(trace.iterations.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(trace.iterations[i].result, some_records()[i].result) << file << i;
      EXPECT_EQ(trace.iterations[i].kept, some_records()[i].kept) << file << i;
      EXPECT_EQ(trace.iterations[i].start, some_records()[i].start);
      EXPECT_EQ(trace.iterations[i].memory.total, 12_GiB);
    }
  }
}

// The columns of traces as they were before `error` and `kept`.
constexpr const char* kOldRow =
    R"({"iteration":1,"start_s":0.0,"duration_s":0.1,"batch":8,"oom":false,"step_peak_allocated":4,)"
    R"("step_peak_reserved":6,"limit":9,"alloc_retries":0,"d_batch":0})";
constexpr const char* kOldTable =
    "iteration,start_s,duration_s,batch,oom,step_peak_allocated,step_peak_reserved,limit,alloc_retries,"
    "d_batch\n1,0.0,0.1,8,false,4,6,9,0,0\n";

TEST(RunTrace, ATraceWithoutTheseColumnsIsRead) {
  const ScratchFolder folder;
  for (const std::string& file : {written(folder, "a.jsonl", kOldRow), written(folder, "a.csv", kOldTable)}) {
    const RunTrace trace = read_run_trace(file);
    ASSERT_EQ(trace.iterations.size(), 1u);
    EXPECT_EQ(trace.iterations[0].result, StepResult::ok);
    EXPECT_TRUE(trace.iterations[0].kept);
  }
}

TEST(RunTrace, ItsFormIsThatOfTheFilesOwnName) {
  const ScratchFolder folder;
  EXPECT_EQ(read_run_trace(written(folder, "run.csv.d/a.jsonl", kOldRow)).iterations.size(), 1u);
  EXPECT_EQ(read_run_trace(written(folder, "a.csv.jsonl", kOldRow)).iterations.size(), 1u);
  EXPECT_EQ(read_run_trace(written(folder, "b/a.csv", kOldTable)).iterations.size(), 1u);
}

// 2^53 is the largest number up to which every whole one is told from the next.
TEST(RunTrace, NumbersThatNoRunHasAreRefused) {
  const ScratchFolder folder;
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  for (const char* number : {"1e300", "9007199254740994", "-1", "\"8\""}) {
    for (const std::string column : {"\"iteration\":1", "\"batch\":8", "\"limit\":9"}) {
      const std::string name = column.substr(0, column.find(':') + 1);
      const std::string file = written(folder, "a.jsonl", with(kOldRow, column, name + number));
      EXPECT_THAT(refusal(file), HasSubstr("a.jsonl: line 1: " + name.substr(0, name.size() - 1))) << number;
    }
  }
  EXPECT_THAT(refusal(written(folder, "a.csv", with(kOldTable, ",9,", ",1e300,"))),
              HasSubstr("a.csv:2: limit"));
  EXPECT_THAT(refusal(written(folder, "a.csv", with(kOldTable, ",8,", ",8.5,"))),
              HasSubstr("a.csv:2: batch \"8.5\" is not a whole number"));
  EXPECT_THAT(refusal(written(folder, "a.jsonl", with(kOldRow, "\"batch\":8", "\"batch\":8.5"))),
              HasSubstr("\"batch\" is missing or no whole number"));
  const std::string largest = with(kOldRow, "\"limit\":9", "\"limit\":9007199254740992");
  EXPECT_EQ(read_run_trace(written(folder, "a.jsonl", largest)).iterations[0].memory.total, Bytes{1} << 53);
}

TEST(RunTrace, WhatIsNeitherTrueNorFalseIsRefused) {
  const ScratchFolder folder;
  std::string text = kOldRow;
  text.insert(text.find("\"step_peak_allocated\""), "\"kept\":1,");
  EXPECT_THAT(refusal(written(folder, "a.jsonl", text)), HasSubstr("\"kept\""));
  EXPECT_THAT(refusal(written(folder, "a.jsonl", R"({"iteration":1})")), HasSubstr("\"oom\""));
  EXPECT_THAT(refusal(written(folder, "a.csv", "iteration,oom,error\n1,false,no\n")), HasSubstr("error"));
}

}  // namespace
}  // namespace vramlab
