// A folder of the test's own, in which the program runs, and a small scenario for it.
#pragma once

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/cli/program_run.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {

class CliTest : public testing::Test {
 protected:
  ScratchFolder folder;

  Ran run(const std::string& arguments) const { return run_program(arguments, folder); }

  // A linear workload and two policies; `expect` goes into the file as it stands.
  void write_scenario(
      const std::string& name,
      const std::string& expect = R"([{"policy": "fixed", "metric": "ooms", "equals": 0}])") const {
    std::ofstream{folder.file(name)}
        << R"({"version": 1, "kind": "training", "name": "small", "objective": "samples_per_s",
      "device": {"total": "10000MiB", "context": 0},
      "workload": {"model": {"kind": "linear", "fixed": "1000MiB", "per_sample": "810MiB", "resident": "20MiB",
                             "parameters": {"batch": [2, 64]}, "step_time": {"floor_ms": 100}},
                   "iterations": 50, "start": {"batch": 8}},
      "policies": [{"use": "fixed"}, {"use": "threshold-step", "step": 2, "label": "rule"}],
      "expect": )"
        << expect << "}";
  }
};

}  // namespace vramlab
