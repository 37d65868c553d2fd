// What the page of --report gets to draw of a long queue.
#include <gtest/gtest.h>

#include "lab/kinds/jobs/spec.hpp"

namespace vramlab {
namespace {

// One after the other on one card, all of one length: none is longer than the others.
TEST(ReportJobs, OfEqualStaysTheFirstFourThousandAreDrawn) {
  JobsScenario scenario = read_jobs(parse_document(
      R"({"version": 1, "kind": "jobs", "name": "long", "cards": [{"total": "10GiB"}],
          "jobs": [{"need": "6GiB", "duration_s": 0.01, "count": 4100}], "policies": [{"use": "job-queue"}]})",
      "long.json"));
  scenario.setup.keep_moments = true;
  const auto results = compare_queues(scenario);
  ASSERT_EQ(results[0].run.stays.size(), 4100u);
  const Json drawn = jobs_section(scenario, results, {})["policies"][0];
  EXPECT_EQ(drawn["omitted"], 100);
  ASSERT_EQ(drawn["stays"].size(), 4000u);
  EXPECT_EQ(drawn["stays"][3999][2], 39.99);  // its begin in seconds
}

}  // namespace
}  // namespace vramlab
