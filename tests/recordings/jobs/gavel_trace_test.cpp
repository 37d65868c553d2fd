// Gavel's traces as they were published; skipped where they are absent. Expected figures: `cut`, `sort`,
// `uniq -c` over the trace, and the throughputs as the file has them.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "recordings/jobs/job_lists.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

const fs::path kJobs = fs::path{VRAMLAB_SOURCE_DIR} / "../shared/data/jobs";
const fs::path kThroughputs = kJobs / "gavel_simulation_throughputs.json.gz";

class GavelTraceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kThroughputs)) GTEST_SKIP() << "no public job traces in " << kJobs;
  }
};

TEST_F(GavelTraceTest, ReadsBothLayouts) {
  const GavelTrace first = read_gavel(kJobs / "gavel_msr_seed0_ee9e8c.trace", kThroughputs);
  EXPECT_EQ(first.lines, 2000u);
  EXPECT_EQ(first.jobs.size() + first.without_throughput, 2000u);
  // "Transformer (batch size 128)", 15486530 steps, 1 card, at once; 5.44610521981264 steps/s on a V100.
  const JobSpec& job = first.jobs.front();
  EXPECT_EQ(job.arrival, SimTime{0});
  EXPECT_EQ(job.demand.cards, 1);
  EXPECT_EQ(job.demand.share_milli, 1000);
  EXPECT_NEAR(to_seconds(job.duration()), 15486530 / 5.44610521981264, 1e-3);
  // The second line asks for 8 cards for a job that was measured on one only.
  EXPECT_EQ(first.jobs[1].arrival, std::chrono::seconds{475911});

  const GavelTrace second = read_gavel(kJobs / "gavel_physical_highmem_test.trace", kThroughputs);
  EXPECT_EQ(second.lines, 8u);
  // "ResNet-18 (batch size 256)", 3948 steps, 2 cards; 15.882848624471642 steps/s.
  EXPECT_EQ(second.jobs.front().demand.cards, 2);
  EXPECT_NEAR(to_seconds(second.jobs.front().duration()), 3948 / 15.882848624471642, 1e-6);
}

TEST_F(GavelTraceTest, AnotherCardIsAnotherDuration) {
  const auto trace = kJobs / "gavel_physical_small_test.trace";
  const auto v100 = read_gavel(trace, kThroughputs, {.gpu = "v100"});
  const auto k80 = read_gavel(trace, kThroughputs, {.gpu = "k80", .share_milli = 500});
  EXPECT_LT(v100.jobs.front().duration(), k80.jobs.front().duration());
  EXPECT_EQ(k80.jobs.front().demand.share_milli, 500);
  EXPECT_THROW(read_gavel(trace, kThroughputs, {.gpu = "v101"}), InputError);
}

TEST(GavelTraceErrors, SayWhereAndWhat) {
  const fs::path trace = fs::path{testing::TempDir()} / "gavel.trace";
  const fs::path rates = fs::path{testing::TempDir()} / "gavel.json";
  std::ofstream{rates} << R"x({"v100": {"('LM', 1)": {"null": 2.0}}})x";
  for (const auto& [text, message] :
       {std::pair{"LM\tx\t-n\t1\t10\t0.0\n", "gavel.trace:1: has 6 columns; a line has 7 or 10"},
        {"LM\tx\t-n\t1\tten\t0.0\t1\n", "gavel.trace:1: steps \"ten\" in column 5 is not a number in range"},
        {"\nLM\tx\t-n\t1\t10\t-3\t1\n", "gavel.trace:2: arrival \"-3\" in column 6 is not a number in range"},
        {"LM\tx\t-n\t1\t10\t0.0\t1.5\n", "gavel.trace:1: cards \"1.5\" in column 7 is not a whole number"},
        {"LM\tx\t-n\t1\t1e12\t0.0\t1\n", "gavel.trace:1: these steps take longer than 31 years"},
        {"", "holds no jobs"}}) {
    std::ofstream{trace} << text;
    try {
      read_gavel(trace, rates);
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
    }
  }
  std::ofstream{trace} << "LM\tx\t-n\t1\t10\t1.5\t1\nLM\tx\t-n\t1\t10\t1.5\t2\r\n";
  const GavelTrace read = read_gavel(trace, rates);
  ASSERT_EQ(read.jobs.size(), 1u);
  EXPECT_EQ(read.without_throughput, 1u);
  EXPECT_EQ(read.jobs[0].duration(), std::chrono::seconds{5});
}

}  // namespace
}  // namespace vramlab
