// Scenarios over a recorded or hand-written program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

// K1-22 (pytorch issue 1529) on a card of 1250 MiB.
std::string small_first(const std::string& rows, const std::string& expect) {
  return R"({"version": 1, "kind": "snapshot", "name": "small first",
    "device": {"total": "1250MiB", "context": 0},
    "workload": {"snapshot": "k1-22-small-first.csv"}, "rows": [)" +
         rows + R"(], "expect": [)" + expect + "]}";
}

ScenarioDocument text_of(const std::string& rows, const std::string& expect) {
  return parse_document(small_first(rows, expect), VRAMLAB_SOURCE_DIR "/scenarios/allocator/x.json");
}

const std::string kRows = R"({"label": "default"}, {"label": "exp", "conf": "expandable_segments:True"},
  {"label": "large", "total": "2GiB"})";

TEST(SnapshotScenario, HoldsRowsAndMarksAgainstTheirBounds) {
  const auto checked = check_expectations(read_seeds(text_of(kRows, R"(
    {"row": "default", "metric": "fits", "equals": false},
    {"row": "exp", "metric": "highest_reserved_bytes", "equals": "1020MiB"},
    {"row": "default", "mark": "first batch", "metric": "reserved_bytes", "equals": "900MiB"},
    {"row": "exp", "metric": "highest_reserved_bytes", "relative_to": "default", "max": 1},
    {"row": "large", "metric": "fits", "equals": true},
    {"row": "large", "metric": "smallest_usable_bytes", "max": "1250MiB"})")));
  std::vector<double> values;
  std::vector<bool> ok;
  for (const CheckedExpectation& one : checked) {
    values.push_back(one.value);
    ok.push_back(one.ok);
  }
  EXPECT_EQ(ok, (std::vector<bool>{true, true, true, false, true, false}));
  EXPECT_EQ(values[2], 900.0 * 1_MiB);
  EXPECT_EQ(values[3], 1020.0 / 900.0);
  EXPECT_GT(values[5], 1250.0 * 1_MiB);  // the case: it does not fit in 1250 MiB
}

// The case's own figures: tried 1000, free 950, allocated 12, reserved 300 (unallocated 288).
TEST(SnapshotScenario, ShowsTheFailedRequestWhereAnExpectationDoesNotHold) {
  const auto checked = check_expectations(
      read_seeds(text_of(kRows, R"({"row": "default", "metric": "fits", "equals": true})")));
  std::string around;
  for (const std::string& line : checked.at(0).around) around += line + '\n';
  EXPECT_THAT(around, HasSubstr("first OOM at action 9 ("));
  EXPECT_THAT(around, HasSubstr("Tried to allocate 1000.00 MiB"));
  EXPECT_THAT(around, HasSubstr("950.00 MiB is free"));
}

std::string problems_of(const std::string& rows, const std::string& expect) {
  try {
    read_seeds(text_of(rows, expect));
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(SnapshotScenario, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(problems_of(kRows, R"({"row": "defualt", "metric": "fits", "equals": true})"),
              HasSubstr("/expect/0/row: no row is labelled \"defualt\". Did you mean \"default\"?"));
  EXPECT_THAT(
      problems_of(kRows, R"({"row": "exp", "metric": "peak_reserved_byte", "max": 1})"),
      HasSubstr(
          "/expect/0/metric: \"peak_reserved_byte\" is not a metric. Did you mean \"peak_reserved_bytes\"?"));
  EXPECT_THAT(problems_of(kRows, R"({"row": "exp", "mark": "first", "metric": "ooms", "max": 1})"),
              HasSubstr("/expect/0/mark: \"first\" is not a mark of the program."));
  EXPECT_THAT(problems_of(R"({"label": "a", "conf": "expandable:True"})", ""), HasSubstr("/rows/0/conf: "));
  EXPECT_THAT(problems_of(R"({"label": "a", "gpu": "rtx-9"})", ""), HasSubstr("/rows/0/gpu"));
  EXPECT_THAT(problems_of(R"({"label": "a", "total": "100MiB"})", ""), HasSubstr("/rows/0: the card of"));
  EXPECT_THAT(problems_of(R"({"label": "a"}, {"label": "a"})", ""), HasSubstr("/rows/1: the label"));
  EXPECT_THAT(
      problems_of(R"({"label": "a", "limit": "1251MiB"})", ""),
      HasSubstr("/rows/0/limit: a limit of 1.2 GiB is more than the 1.2 GiB of the card. Allowed is up "
                "to 1310720000 bytes"));
  EXPECT_THAT(problems_of("", ""), HasSubstr("/rows: the list is empty"));
}

}  // namespace
}  // namespace vramlab
