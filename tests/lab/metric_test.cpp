#include "lab/metric.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "lab/kinds/epoch/spec.hpp"
#include "lab/kinds/jobs/spec.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/kinds/snapshot/spec.hpp"

namespace vramlab {
namespace {

std::vector<std::string> names_of(std::string_view kind) {
  std::vector<std::string> names;
  for (const MetricDescription& metric : metrics_of(kind)) names.push_back(metric.name);
  return names;
}

// Results and table name the same figures in the same order, so that no metric goes unexplained.
TEST(MetricTable, DescribesEveryMetricOfTheResults) {
  EXPECT_EQ(names_of("training"), training_metric_names());
  EXPECT_EQ(names_of("jobs"), jobs_metric_names());
  EXPECT_EQ(names_of("epoch"), epoch_metric_names());
  EXPECT_EQ(names_of("search"), search_metric_names());
}

// Figures of a row, and behind them those that only a mark has.
TEST(MetricTable, DescribesEveryFigureOfASnapshotsRows) {
  std::vector<std::string> names = snapshot_metric_names();
  for (const std::string& name : snapshot_mark_metric_names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  EXPECT_EQ(names_of("snapshot"), names);
}

TEST(MetricTable, EveryMetricHasAUnitATitleAndAMeaning) {
  const std::set<std::string> units{"count", "share", "bytes", "s", "1/s", "h", "score"};
  for (const MetricFamily& family : metric_families()) {
    for (const MetricDescription& metric : family.metrics) {
      EXPECT_TRUE(units.contains(metric.unit)) << metric.name;
      EXPECT_FALSE(metric.title.empty() || metric.about.empty()) << metric.name;
      EXPECT_FALSE(metric.about.ends_with('.')) << metric.name;
    }
  }
}

}  // namespace
}  // namespace vramlab
