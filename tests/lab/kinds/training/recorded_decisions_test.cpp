// The decisions of the simulated card against those of a real one: PyTorch training of the super-resolution
// network on an H100 limited to 12 GiB, with the dual optimizer in the loop (tests/data/policy-runs).
#include <fstream>
#include <sstream>
#include <tuple>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <gtest/gtest.h>

#include "lab/kinds/training/run.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

Json read_recording(const std::string& name) {
  std::ifstream file{std::string{VRAMLAB_SOURCE_DIR "/tests/data/policy-runs/"} + name + ".json.gz",
                     std::ios::binary};
  boost::iostreams::filtering_istream input;
  input.push(boost::iostreams::gzip_decompressor{});
  input.push(file);
  std::ostringstream text;
  text << input.rdbuf();
  return Json::parse(text.str());
}

/// Iteration, batch and lq before, change of both.
using Decision = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

std::vector<Decision> recorded_decisions(const Json& recording) {
  std::vector<Decision> decisions;
  for (const Json& row : recording["rows"]) {
    if (row["db"] == 0 && row["dl"] == 0) continue;
    decisions.emplace_back(row["i"], row["batch"], row["lq"], row["db"], row["dl"]);
  }
  return decisions;
}

std::vector<Decision> simulated_decisions(const TrainingRun& run) {
  std::vector<Decision> decisions;
  for (const Adjustment& a : run.adjustments) {
    decisions.emplace_back(a.iteration, a.from[0], a.from[1], a.to[0] - a.from[0], a.to[1] - a.from[1]);
  }
  return decisions;
}

const std::string kClosedForm = "models/superres-rrdb6.json";
const std::string kRecorded = "models/superres-recorded.json";

TrainingRun simulate(const std::string& scenario_name, const std::string& label,
                     const std::string& model = kClosedForm) {
  const std::string file = VRAMLAB_SOURCE_DIR "/scenarios/" + scenario_name + ".json";
  std::string text = read_input_file(file);
  const std::size_t place = text.find(kClosedForm);
  if (place == std::string::npos) throw std::logic_error("no such model in the scenario");
  const TrainingScenario scenario =
      read_training(parse_document(text.replace(place, kClosedForm.size(), model), file));
  for (const PolicyEntry& entry : scenario.policies) {
    if (entry.label == label) return run_policy(scenario, entry).run;
  }
  throw std::logic_error("no such policy");
}

/// Rows whose figures equal the recorded ones.
struct EqualRows {
  std::size_t allocated = 0;  ///< after the step, and its peak
  std::size_t reserved = 0;   ///< likewise
  std::size_t refused = 0;    ///< refused requests and retries
  friend bool operator==(const EqualRows&, const EqualRows&) = default;
};

EqualRows equal_rows(const Json& recording, const TrainingRun& run) {
  EqualRows equal;
  for (std::size_t i = 0; i < recording["rows"].size() && i < run.iterations.size(); ++i) {
    const Json& row = recording["rows"][i];
    const MemoryView& memory = run.iterations[i].memory;
    equal.allocated += row["allocated"] == memory.allocated && row["peak_allocated"] == memory.peak_allocated;
    equal.reserved += row["reserved"] == memory.reserved && row["peak_reserved"] == memory.peak_reserved;
    equal.refused += row["retries"] == memory.alloc_retries && row["ooms"] == memory.allocator_ooms;
  }
  return equal;
}

TEST(RecordedDecisions, PeakFrom12And128) {
  const Json recording = read_recording("peak_from_12_128");
  const TrainingRun run = simulate("ratchet", "peak");
  EXPECT_EQ(recorded_decisions(recording).size(), 53u);
  EXPECT_EQ(simulated_decisions(run), recorded_decisions(recording));
  EXPECT_EQ(equal_rows(recording, run), (EqualRows{900, 900, 900}));
}

TEST(RecordedDecisions, SettledFrom12And128) {
  const Json recording = read_recording("settled_from_12_128");
  const TrainingRun run = simulate("ratchet", "settled");
  EXPECT_EQ(recorded_decisions(recording).size(), 2u);
  EXPECT_EQ(simulated_decisions(run), recorded_decisions(recording));
  EXPECT_EQ(equal_rows(recording, run),
            (EqualRows{500, 500, 500}));  // the scenario runs on; the recording ends after 500
}

// This run lives at the limit for hundreds of iterations, where libraries fall back to smaller workspaces.
// Its decisions are equal; the closed form does not know what is asked for in place of a refused workspace,
// and the number of refused requests is not (docs/fidelity.md).
TEST(RecordedDecisions, BlindFrom8And96) {
  const Json recording = read_recording("blind_from_8_96");
  const TrainingRun run = simulate("blind-growth", "blind");
  EXPECT_EQ(recorded_decisions(recording).size(), 101u);
  EXPECT_EQ(simulated_decisions(run), recorded_decisions(recording));
  ASSERT_EQ(run.iterations.size(), recording["rows"].size());
  std::size_t equal_peaks = 0;
  for (std::size_t i = 0; i < run.iterations.size(); ++i) {
    const Json& row = recording["rows"][i];
    EXPECT_EQ(run.iterations[i].result == StepResult::oom, row["oom"].get<bool>()) << "iteration " << i + 1;
    equal_peaks += run.iterations[i].memory.peak_allocated == row["peak_allocated"] ? 1 : 0;
  }
  EXPECT_EQ(equal_peaks, 1084u);  // of 1,100; the others are at most 0.23 % off
}

// The model fitted from eight recorded shapes, batch 4 to 8 and lq 32 to 96, and from what was asked for at
// two of them where workspaces were refused; these runs begin outside of that.
// At (12, 128) it takes convolutions for others that ask for a little less: 15 segments are 2 MiB smaller.
TEST(RecordedDecisions, FittedModelMeetsPeakAndSettled) {
  for (const auto& [label, name, rows] : {std::tuple{"peak", "peak_from_12_128", std::size_t{900}},
                                          std::tuple{"settled", "settled_from_12_128", std::size_t{500}}}) {
    const Json recording = read_recording(name);
    const TrainingRun run = simulate("ratchet", label, kRecorded);
    EXPECT_EQ(simulated_decisions(run), recorded_decisions(recording)) << label;
    EXPECT_EQ(equal_rows(recording, run), (EqualRows{rows, 0, rows})) << label;
    EXPECT_EQ(recording["rows"][0]["reserved"].get<Bytes>() - run.iterations[0].memory.reserved, 30_MiB);
  }
}

/// Refused requests and retries of one iteration.
std::pair<std::int64_t, std::int64_t> refused_in(const TrainingRun& run, std::size_t iteration) {
  const MemoryView& before = run.iterations[iteration - 2].memory;
  const MemoryView& after = run.iterations[iteration - 1].memory;
  return {static_cast<std::int64_t>(after.allocator_ooms - before.allocator_ooms),
          static_cast<std::int64_t>(after.alloc_retries - before.alloc_retries)};
}

std::pair<std::int64_t, std::int64_t> refused_in(const Json& recording, std::size_t iteration) {
  const Json& before = recording["rows"][iteration - 2];
  const Json& after = recording["rows"][iteration - 1];
  return {after["ooms"].get<std::int64_t>() - before["ooms"].get<std::int64_t>(),
          after["retries"].get<std::int64_t>() - before["retries"].get<std::int64_t>()};
}

// Far outside of what was recorded too, where workspaces follow the forms of their algorithms, and where
// refused ones are looked for among the kernels that the recording sr_limits showed at (6, 96) and (8, 80).
TEST(RecordedDecisions, FittedModelMeetsBlind) {
  const Json recording = read_recording("blind_from_8_96");
  const TrainingRun run = simulate("blind-growth", "blind", kRecorded);
  EXPECT_EQ(simulated_decisions(run), recorded_decisions(recording));
  ASSERT_EQ(run.iterations.size(), recording["rows"].size());
  std::vector<std::size_t> otherwise;  // iterations with another number of refused requests or retries
  for (std::size_t i = 0; i < run.iterations.size(); ++i) {
    const Json& row = recording["rows"][i];
    EXPECT_EQ(run.iterations[i].result == StepResult::oom, row["oom"].get<bool>()) << "iteration " << i + 1;
    if (i > 0 && refused_in(run, i + 1) != refused_in(recording, i + 1)) otherwise.push_back(i + 1);
  }
  const EqualRows equal = equal_rows(recording, run);
  EXPECT_EQ(equal.allocated, 1100u);
  EXPECT_EQ(equal.reserved, 1100u);
  EXPECT_EQ(otherwise, (std::vector<std::size_t>{1081, 1091}));
  const MemoryView& end = run.iterations.back().memory;
  EXPECT_EQ(end.allocator_ooms, 208u);  // 229 on the card
  EXPECT_EQ(end.alloc_retries, 234u);   // 255
}

}  // namespace
}  // namespace vramlab
