#include "lab/diff/difference.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data/recorded";

std::int64_t growth_of(const std::vector<GrowthRow>& shares) {
  std::int64_t total = 0;
  for (const GrowthRow& share : shares) total += share.growth();
  return total;
}

// Every byte by which reserved memory grew is in one row.
TEST(PeakDifference, AccountsForEveryByte) {
  const TorchSnapshot a = read_torch_snapshot(kFixtures / "lstm.pickle.gz");
  const TorchSnapshot b = read_torch_snapshot(kFixtures / "bert.pickle.gz");
  const auto differences = compare_peaks(a, b);
  ASSERT_EQ(differences.size(), 1u);
  const PeakDifference& d = differences[0];
  const auto rest = static_cast<std::int64_t>(d.b.rest) - static_cast<std::int64_t>(d.a.rest);
  const auto reserved = static_cast<std::int64_t>(d.b.reserved) - static_cast<std::int64_t>(d.a.reserved);
  EXPECT_NE(reserved, 0);
  EXPECT_EQ(growth_of(d.by_group) + rest, reserved);
  EXPECT_EQ(growth_of(d.by_size_class) + rest, reserved);
  const auto back = compare_peaks(b, a);
  EXPECT_EQ(growth_of(back[0].by_size_class), -growth_of(d.by_size_class));
  EXPECT_EQ(growth_of(compare_peaks(a, a)[0].by_size_class), 0);
}

const char* const kResult = R"({"scenario": "s", "policies": [
  {"label": "x", "metrics": {"ooms": 0, "iterations": 9}, "final": {"batch": 8},
   "adjustments": [{"iteration": 3, "from": {"batch": 4}, "to": {"batch": 8}, "reason": "r"}]},
  {"label": "only a", "metrics": {}, "final": {}, "adjustments": []}]})";

TEST(ResultDifference, SaysWhatChanged) {
  const Json a = Json::parse(kResult);
  Json b = a;
  EXPECT_FALSE(compare_results(a, "a", b, "b")[0].policies[0].differs());
  b["policies"][0]["metrics"]["ooms"] = 2;
  b["policies"][0]["final"]["batch"] = 6;
  b["policies"][0]["adjustments"].push_back({{"iteration", 5}});
  b["policies"][1]["label"] = "only b";
  const auto differences = compare_results(a, "a", Json::array({b}), "b");
  ASSERT_EQ(differences.size(), 1u);
  ASSERT_EQ(differences[0].policies.size(), 3u);
  const PolicyDifference& x = differences[0].policies[0];
  EXPECT_TRUE(x.differs());
  EXPECT_EQ(x.metrics[0].name, "ooms");
  EXPECT_EQ(x.metrics[0].b, 2);
  EXPECT_FALSE(x.metrics[1].differs());
  EXPECT_EQ(x.final_point[0].b, 6);
  EXPECT_EQ(x.first_other_adjustment, 1u);
  EXPECT_TRUE(x.adjustment_a.is_null());
  EXPECT_FALSE(differences[0].policies[1].in_b);
  EXPECT_FALSE(differences[0].policies[2].in_a);
}

TEST(ResultDifference, RefusesWhatIsNoResult) {
  const Json good = Json::parse(kResult);
  for (const char* bad :
       {"{}", "[]", "[1]", R"({"scenario": "s"})", R"({"scenario": 1, "policies": []})",
        R"({"scenario": "s", "policies": [1]})", R"({"scenario": "other", "policies": []})"}) {
    EXPECT_THROW(compare_results(good, "a", Json::parse(bad), "b"), InputError) << bad;
  }
}

}  // namespace
}  // namespace vramlab
