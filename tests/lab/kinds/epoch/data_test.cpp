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
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const fs::path kScenario = VRAMLAB_SOURCE_DIR "/scenarios/epoch-lengths.json";
const fs::path kShipped = VRAMLAB_SOURCE_DIR "/scenarios/lengths/synthetic-conversations.csv";
const fs::path kRecorded = VRAMLAB_SOURCE_DIR "/../shared/data/lengths";

std::int64_t tokens_of(const std::vector<Sample>& samples) {
  return std::accumulate(samples.begin(), samples.end(), std::int64_t{0},
                         [](std::int64_t sum, const Sample& sample) { return sum + sample.tokens; });
}

std::string error_of(const SampleFile& how) {
  try {
    read_samples(how);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Lengths, TheShippedFileIsReadLineByLine) {
  const auto samples = read_samples({.file = kShipped, .most = 1024}).samples;
  ASSERT_EQ(samples.size(), 1200u);
  EXPECT_EQ(samples.front(), (Sample{.task = 0, .images = 0, .length = 866, .tokens = 866}));
  EXPECT_EQ(tokens_of(samples), 426117);  // sums of the columns by awk
  const auto some = read_samples({.file = kShipped, .most = 500, .count = 2}).samples;
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some.front().tokens, 500);
}

TEST(Lengths, RecordedRequestsAreReadByTheNameOfTheirColumn) {
  if (!fs::exists(kRecorded))
    GTEST_SKIP() << "no " << kRecorded << ": recorded lengths are not part of the project";
  const auto prompts =
      read_samples({.file = kRecorded / "vidur_splitwise_conv.csv", .column = "num_prefill_tokens"}).samples;
  EXPECT_EQ(prompts.size(), 19366u);
  EXPECT_EQ(tokens_of(prompts), 22361870);
  const auto papers =
      read_samples({.file = kRecorded / "vidur_arxiv_summarization.csv", .column = "num_total_tokens"})
          .samples;
  EXPECT_EQ(papers.size(), 28257u);
  EXPECT_EQ(tokens_of(papers), 81366269);
}

/// A file of that content, for as long as this lives.
class Written {
 public:
  explicit Written(const std::string& content, const std::string& name = "samples.csv")
      : file(folder_.path() / name) {
    std::ofstream{file} << content;
  }

 private:
  ScratchFolder folder_;

 public:
  const fs::path file;
};

TEST(Lengths, AWrongLineOrColumnIsNamed) {
  const Written lengths{"tokens\n12\n1.5\n-3\n"};
  const std::string name = lengths.file.string();
  EXPECT_EQ(error_of({.file = lengths.file}),
            name +
                ":3: tokens \"1.5\" is not a whole number of tokens from 0 to 1000000000. Are these "
                "seconds? Give \"positions_per_second\".\n" +
                name + ":4: tokens \"-3\" is not a number of at least 0.");
  EXPECT_EQ(error_of({.file = lengths.file, .column = "token"}),
            name + ":1: has no column \"token\" of lengths; \"column\" names it. Did you mean \"tokens\"?");
  EXPECT_THAT(error_of({.file = Written{"tokens\n"}.file}), HasSubstr("has no lines."));
}

TEST(Lengths, ZerosAreSkippedAndCounted) {
  const SampleList list = read_samples({.file = Written{"tokens\n12\n0\n7\n0\n"}.file});
  EXPECT_THAT(list.samples,
              ElementsAre(Sample{.length = 12, .tokens = 12}, Sample{.length = 7, .tokens = 7}));
  EXPECT_EQ(list.skipped, 2);
  EXPECT_THAT(error_of({.file = Written{"tokens\n0\n0\n"}.file}), HasSubstr("all 2 lines have length 0."));
}

// A manifest as NeMo writes it; 12.5 positions a second, a part of one counts as one.
TEST(Lengths, SecondsOfJsonLinesAreTurnedIntoPositions) {
  const Written manifest{
      "{\"audio_filepath\": \"a.wav\", \"duration\": 2.0, \"text\": \"a\"}\n\n"
      "{\"audio_filepath\": \"b.wav\", \"duration\": 2.01, \"text\": \"b\"}\r\n"
      "{\"audio_filepath\": \"c.wav\", \"duration\": 0, \"text\": \"\"}\n"
      "{\"audio_filepath\": \"d.wav\", \"duration\": 0.001, \"text\": \"\"}",
      "manifest.jsonl"};
  const SampleList list =
      read_samples({.file = manifest.file, .column = "duration", .positions_per_second = 12.5});
  EXPECT_THAT(list.samples,
              ElementsAre(Sample{.length = 25, .tokens = 25}, Sample{.length = 26, .tokens = 26},
                          Sample{.length = 1, .tokens = 1}));
  EXPECT_EQ(list.skipped, 1);
}

TEST(Lengths, AWrongLineOfJsonIsNamed) {
  const Written lines{"{\"duration\": 2}\n{\"duratoin\": 2}\n{\"duration\": \"2\"}\n[2]\n{\"duration\"\n",
                      "lines.json"};
  const std::string wrong = error_of({.file = lines.file, .column = "duration", .positions_per_second = 10});
  EXPECT_THAT(wrong,
              HasSubstr("lines.json:2: has no key \"duration\" of lengths; \"column\" names it. Did you "
                        "mean \"duratoin\"?"));
  EXPECT_THAT(wrong, HasSubstr("lines.json:3: duration \"2\" is not a number of at least 0."));
  EXPECT_THAT(wrong, HasSubstr("lines.json:4: is not an object"));
  EXPECT_THAT(wrong, HasSubstr("lines.json:5: line 1, column"));
}

SampleFile listed(const fs::path& file) {
  return {.file = file, .column = "length", .tasks = {"T1", "T2"}, .tokens_per_image = 50};
}

TEST(SampleLists, EachLineIsASampleOfATaskThatTheScenarioNames) {
  const SampleList list =
      read_samples(listed(Written{"task,images,length\nT2,3,70\nT1,1,0\nT1,0,12\nT1,0,0\n"}.file));
  EXPECT_THAT(list.samples, ElementsAre(Sample{.task = 1, .images = 3, .length = 70, .tokens = 220},
                                        Sample{.task = 0, .images = 1, .length = 0, .tokens = 50},
                                        Sample{.task = 0, .images = 0, .length = 12, .tokens = 12}));
  EXPECT_EQ(list.skipped, 1);
  const Written lines{
      "{\"task\": \"T2\", \"images\": 3, \"length\": 70}\n{\"task\": \"T1\", \"length\": 12}\n"};
  const SampleList same = read_samples(listed(lines.file));
  EXPECT_THAT(same.samples, ElementsAre(list.samples[0], list.samples[2]));
}

TEST(SampleLists, UnknownColumnsAndTasksAreRefusedWithTheirPlace) {
  const Written columns{"task,image,length,split\nT1,1,12,train\n"};
  const std::string name = columns.file.string();
  EXPECT_EQ(error_of(listed(columns.file)),
            name + ":1: column 2 \"image\" is unknown. Did you mean \"images\"?\n" + name +
                ":1: column 4 \"split\" is unknown. Known: task, images, length.");
  const Written cells{"task,images,length\nT3,1,12\nT1,1.5,12\nT1,,12\n"};
  const std::string wrong = error_of(listed(cells.file));
  EXPECT_THAT(wrong, HasSubstr(":2: task \"T3\" is not a task of the scenario. Did you mean \"T1\"?"));
  EXPECT_THAT(wrong, HasSubstr(":3: images \"1.5\" is not a whole number of images from 0 to 1000."));
  EXPECT_THAT(wrong, HasSubstr(":4: images \"\" is not a number of at least 0."));
  EXPECT_THAT(error_of(listed(Written{"images,length\n1,12\n"}.file)),
              HasSubstr(":1: has no column \"task\", and the scenario names tasks."));
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
