// What-if equals what was: recorded programs replayed under other settings, against real runs under them.
#include "trace/snapshot_program.hpp"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/error.hpp"
#include "trace/program_replay.hpp"
#include "trace/truth_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
const fs::path kFixtures = fs::path(VRAMLAB_SOURCE_DIR) / "tests/data/recorded";
const fs::path kShared = fs::path(VRAMLAB_SOURCE_DIR) / "../shared/data";

std::int64_t truth_value(const TruthMark& mark, const std::string& name) {
  const auto& names = stat_names();
  const auto place = std::find(names.begin(), names.end(), name) - names.begin();
  return *mark.stats.at(static_cast<std::size_t>(place));
}

struct WhatIfCase {
  const char* workload;
  const char* setting;
};
void PrintTo(const WhatIfCase& c, std::ostream* out) { *out << c.workload << '.' << c.setting; }

class WhatIf : public testing::TestWithParam<WhatIfCase> {};

TEST_P(WhatIf, EqualsWhatWas) {
  const fs::path truth_file =
      kShared / "whatif" / (std::string(GetParam().workload) + "." + GetParam().setting + ".truth.json.gz");
  const fs::path recording = kShared / "recorded" / (std::string(GetParam().workload) + ".pickle.gz");
  if (!fs::exists(truth_file)) GTEST_SKIP() << truth_file << " is not there";
  const TruthFile truth = read_truth_file(truth_file);
  const ClientProgram program = read_client_programs(recording).at(0);
  ReplaySetup setup;
  setup.settings = parse_allocator_settings(truth.conf);
  setup.total = truth.total_memory;
  const ProgramOutcome outcome = replay_program(program, setup);
  const TruthMark& end = truth.marks.back();
  std::printf("%s %s |", GetParam().workload, truth.conf.c_str());
  for (const char* name : {"allocated_bytes.all.peak", "reserved_bytes.all.peak", "segment.all.current",
                           "num_alloc_retries", "num_device_alloc", "num_device_free"}) {
    const auto& names = stat_names();
    const auto place = std::find(names.begin(), names.end(), name) - names.begin();
    std::printf(" %s %ld %ld", name, long(truth_value(end, name)),
                long(stat_values(outcome.stats)[size_t(place)]));
  }
  std::printf("\n");
}

INSTANTIATE_TEST_SUITE_P(Real, WhatIf,
                         testing::Values(WhatIfCase{"gpt2_var", "default"}, WhatIfCase{"gpt2_var", "expand"},
                                         WhatIfCase{"gpt2_var", "pow8"}, WhatIfCase{"gpt2_var", "split128"},
                                         WhatIfCase{"resnet", "default"}, WhatIfCase{"resnet", "expand"},
                                         WhatIfCase{"resnet", "pow8split128"},
                                         WhatIfCase{"resnet", "split128"}, WhatIfCase{"sr_dual", "default"},
                                         WhatIfCase{"sr_dual", "expand"}, WhatIfCase{"sr_dual", "pow4"},
                                         WhatIfCase{"sr_dual", "split64"}));

}  // namespace
}  // namespace vramlab
