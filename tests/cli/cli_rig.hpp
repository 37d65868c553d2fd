// Runs the program as a user does, in a folder of the test's own.
#pragma once

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/cli/scratch_folder.hpp"
#include "trace/input_file.hpp"

namespace vramlab {

/// What a run of the program came to.
struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

class CliTest : public testing::Test {
 protected:
  ScratchFolder folder;

  Ran run(const std::string& arguments) const {
    const std::string err_file = folder.file("stderr");
    const std::string command =
        "cd '" + folder.path().string() + "' && '" VRAMLAB_PROGRAM "' " + arguments + " 2>'" + err_file + "'";
    Ran ran;
    FILE* pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> buffer{};
    while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
      ran.out.append(buffer.data(), n);
    ran.code = WEXITSTATUS(::pclose(pipe));
    ran.err = read_input_file(err_file);
    return ran;
  }

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
