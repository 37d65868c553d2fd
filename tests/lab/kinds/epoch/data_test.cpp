// Data sets of epochs whose lengths come from a file: the one that is shipped, and recorded ones where they
// are.
#include "lab/kinds/epoch/data.hpp"

#include <fstream>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/json.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kScenario = VRAMLAB_SOURCE_DIR "/scenarios/epoch-lengths.json";
const fs::path kShipped = VRAMLAB_SOURCE_DIR "/scenarios/lengths/synthetic-conversations.csv";
const fs::path kRecorded = VRAMLAB_SOURCE_DIR "/../shared/data/lengths";

std::int64_t tokens_of(const std::vector<Sample>& samples) {
  return std::accumulate(samples.begin(), samples.end(), std::int64_t{0},
                         [](std::int64_t sum, const Sample& sample) { return sum + sample.tokens; });
}

std::string error_of(const fs::path& file, const std::string& column) {
  try {
    read_lengths(file, column, 1024, 0);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Lengths, TheShippedFileIsReadLineByLine) {
  const auto samples = read_lengths(kShipped, "tokens", 1024, 0);
  ASSERT_EQ(samples.size(), 1200u);
  EXPECT_EQ(samples.front(), (Sample{.task = 0, .images = 0, .length = 866, .tokens = 866}));
  EXPECT_EQ(tokens_of(samples), 426117);  // sums of the columns by awk
  const auto some = read_lengths(kShipped, "tokens", 500, 2);
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some.front().tokens, 500);
}

TEST(Lengths, RecordedRequestsAreReadByTheNameOfTheirColumn) {
  if (!fs::exists(kRecorded))
    GTEST_SKIP() << "no " << kRecorded << ": recorded lengths are not part of the project";
  const auto prompts =
      read_lengths(kRecorded / "vidur_splitwise_conv.csv", "num_prefill_tokens", 1'000'000, 0);
  EXPECT_EQ(prompts.size(), 19366u);
  EXPECT_EQ(tokens_of(prompts), 22361870);
  const auto papers =
      read_lengths(kRecorded / "vidur_arxiv_summarization.csv", "num_total_tokens", 1'000'000, 0);
  EXPECT_EQ(papers.size(), 28257u);
  EXPECT_EQ(tokens_of(papers), 81366269);
}

TEST(Lengths, AWrongLineOrColumnIsNamed) {
  const ScratchFolder folder;
  const fs::path file = folder.path() / "lengths.csv";
  std::ofstream{file} << "tokens\n12\n0\n";
  EXPECT_THAT(error_of(file, "tokens"), HasSubstr("is not a whole number of tokens from 1 to 1000000000."));
  EXPECT_THAT(error_of(file, "token"), HasSubstr("token"));
  std::ofstream{file} << "tokens\n";
  EXPECT_THAT(error_of(file, "tokens"), HasSubstr("has no lines."));
}

/// The shipped scenario with other lengths.
EpochScenario scenario_with(const std::string& lengths, const std::string& column, std::int64_t samples) {
  std::ifstream file{kScenario};
  Json json = Json::parse(file, nullptr, true, true);
  json["workload"]["data"] = {{"lengths", lengths}, {"column", column}, {"most", 1024}, {"samples", samples}};
  return read_epoch(parse_document(json.dump(), kScenario));
}

// Whatever the lengths, the sampler that learns trains on each of them once and never runs out of memory,
// where a fixed batch of 8 does.
void expect_dense_to_fit(const EpochScenario& scenario) {
  const auto results = compare_composers(scenario, {"fixed", "dense"});
  const auto value = [](const EpochResult& result, const char* name) {
    return find_metric(result.metrics, name).value();
  };
  EXPECT_GT(value(results[0], "ooms"), 0);
  EXPECT_EQ(value(results[1], "ooms"), 0);
  EXPECT_EQ(value(results[1], "samples"), static_cast<double>(scenario.setup.samples.size()));
  EXPECT_EQ(value(results[1], "untrained_samples"), 0);
}

TEST(EpochLengths, TheShippedScenarioFits) {
  const EpochScenario scenario = scenario_with("lengths/synthetic-conversations.csv", "tokens", 1000);
  EXPECT_EQ(scenario.setup.samples.size(), 1000u);
  expect_dense_to_fit(scenario);
}

TEST(EpochLengths, RecordedRequestsFit) {
  if (!fs::exists(kRecorded))
    GTEST_SKIP() << "no " << kRecorded << ": recorded lengths are not part of the project";
  const std::string file = (kRecorded / "vidur_splitwise_conv.csv").string();
  expect_dense_to_fit(scenario_with(file, "num_prefill_tokens", 2000));
}

}  // namespace
}  // namespace vramlab
