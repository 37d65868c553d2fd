#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "recordings/snapshot/marks.hpp"
#include "sim/memory/memory_stats.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

std::string document(const std::string& cap, const std::string& marks) {
  return R"({"workload": "w", "tag": ".t", "torch": "2.11.0", "conf": "", "cap_mib": )" + cap +
         R"(, "total_memory": 85017493504, "entries": 9, "marks": [)" + marks + "]}";
}

std::string refusal_of_truth(const std::string& text) {
  try {
    parse_truth_file(text, "x.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TruthFile, ReadsItsFields) {
  const TruthFile truth =
      parse_truth_file(document("0", R"({"label": "start", "t_us": 5, "stats": {"num_ooms": 3, "newer": 1},)"
                                     R"( "mem_get_info": [7, 8]}, {"label": "end", "t_us": 5, "stats": {}})"),
                       "x.json");
  EXPECT_EQ(truth.workload, "w");
  EXPECT_EQ(truth.tag, ".t");
  EXPECT_EQ(truth.torch, "2.11.0");
  EXPECT_EQ(truth.total_memory, 85017493504u);
  EXPECT_EQ(truth.entries, 9u);
  EXPECT_FALSE(truth.limit);
  ASSERT_EQ(truth.marks.size(), 2u);
  EXPECT_EQ(truth.marks[0].label, "start");
  EXPECT_EQ(truth.marks[0].time_us, 5);
  EXPECT_EQ(truth.marks[0].device_free, 7u);
  EXPECT_EQ(truth.marks[0].device_total, 8u);
  const std::vector<std::string>& names = stat_names();
  ASSERT_EQ(truth.marks[0].stats.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(truth.marks[0].stats[i],
              names[i] == "num_ooms" ? std::optional<std::int64_t>(3) : std::nullopt);
  }
}

// R9.1: int(cap / total * total) in Python. For 4,096 MiB the product falls just short.
TEST(TruthFile, TheLimitIsTheProductOfFractionAndTotal) {
  EXPECT_EQ(parse_truth_file(document("4096", ""), "x").limit, 4294967295u);
  EXPECT_EQ(parse_truth_file(document("9000", ""), "x").limit, 9437184000u);
  EXPECT_EQ(parse_truth_file(document("1270", ""), "x").limit, 1331691519u);
}

TEST(TruthFile, SaysWhereItIsWrong) {
  EXPECT_THAT(refusal_of_truth("{"), HasSubstr("x.json: byte 2: not valid JSON."));
  EXPECT_THAT(refusal_of_truth("{}"), HasSubstr("x.json: /conf: is missing. This is not a truth file."));
  EXPECT_THAT(refusal_of_truth(document("\"much\"", "")),
              HasSubstr("/cap_mib: found \"much\", needed is a whole number from 0 to"));
  EXPECT_THAT(refusal_of_truth(document("0", R"({"label": "x", "t_us": 1})")),
              HasSubstr("/marks/0/stats: is missing"));
  EXPECT_THAT(refusal_of_truth(document("0", R"({"label": "x", "t_us": 1, "stats": {"num_ooms": "x"}})")),
              HasSubstr("/marks/0/stats/num_ooms: found "));
  EXPECT_THAT(refusal_of_truth(document("0", R"({"label": "x", "t_us": 2, "stats": {}},)"
                                             R"( {"label": "y", "t_us": 1, "stats": {}})")),
              HasSubstr("/marks/1/t_us: is earlier than the mark before it."));
}

TEST(TruthFile, IsFoundBesideItsSnapshot) {
  const std::filesystem::path folder = std::filesystem::path(VRAMLAB_SOURCE_DIR) / "tests/data/recorded";
  EXPECT_EQ(find_truth_file(folder / "lstm.pickle.gz"), folder / "lstm.truth.json.gz");
  EXPECT_EQ(find_truth_file(folder / "lstm.pickle"), folder / "lstm.truth.json.gz");
  EXPECT_FALSE(find_truth_file(folder / "nothing.pickle.gz"));
}

}  // namespace
}  // namespace vramlab
