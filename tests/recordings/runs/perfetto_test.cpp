#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "recordings/runs/run_trace.hpp"
#include "tests/recordings/runs/written_text.hpp"

namespace vramlab {
namespace {

using Json = nlohmann::json;

// Times are exact: 1 ns is 0.001 µs.
TEST(PerfettoTrace, ShowsStepsCountersOomsAndChanges) {
  const ParameterSpace space{{{.name = "batch", .low = 1, .high = 64}, {.name = "lq", .low = 8, .high = 64}}};
  IterationRecord failed;
  failed.iteration = 3;
  failed.start = SimTime{1'000'000'001};
  failed.duration = SimTime{2'500};
  failed.result = StepResult::oom;
  failed.memory.allocated = 10;
  failed.memory.reserved = 30;
  failed.step_peak_allocated = 20;
  failed.step_peak_reserved = 40;
  failed.choice =
      std::make_shared<StepChoice>(StepChoice{.point = {8, 32}, .delta = {-2, 0}, .reason = "oom \"twice\""});
  const std::string text = text_of(write_trace_perfetto, "a \\ b", space, std::vector{failed});
  EXPECT_NE(text.find(R"("ts":1000000.001,"dur":2.500)"), std::string::npos);
  const Json events = Json::parse(text)["traceEvents"];
  ASSERT_EQ(events.size(), 2u + 1 + 6 + 2);
  EXPECT_EQ(events[0]["args"]["name"], "a \\ b");
  EXPECT_EQ(events[2]["ph"], "X");
  EXPECT_EQ(events[2]["name"], "step (OOM)");
  EXPECT_EQ(events[2]["args"]["lq"], 32);
  const auto counter = [&](std::size_t place, const char* name, int bytes) {
    EXPECT_EQ(events[place]["ph"], "C");
    EXPECT_EQ(events[place]["name"], name);
    EXPECT_EQ(events[place]["args"]["bytes"], bytes);
  };
  counter(3, "allocated", 20);
  counter(4, "active", 20);
  counter(5, "reserved", 40);
  counter(6, "allocated", 10);
  counter(8, "reserved", 30);
  EXPECT_EQ(events[9]["name"], "OOM");
  EXPECT_EQ(events[9]["ph"], "i");
  EXPECT_EQ(events[10]["name"], "batch -2");
  EXPECT_EQ(events[10]["args"]["reason"], "oom \"twice\"");
}

TEST(PerfettoTrace, ShowsErrorsAndLostWork) {
  IterationRecord lost;
  lost.result = StepResult::error;
  lost.kept = false;
  const Json events = Json::parse(text_of(write_trace_perfetto, "run", ParameterSpace{},
                                          std::vector{lost, IterationRecord{}}))["traceEvents"];
  EXPECT_EQ(events[2]["name"], "step (error)");
  EXPECT_EQ(events[2]["args"]["kept"], false);
  EXPECT_EQ(events[9]["name"], "step");
  EXPECT_FALSE(events[9]["args"].contains("kept"));
}

}  // namespace
}  // namespace vramlab
