// Runs the program as a user does.
#pragma once

#include <array>
#include <cstdio>
#include <string>

#include <sys/wait.h>

#include "recordings/input_file.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {

/// What a run of the program came to.
struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

/// Runs `vramlab arguments` in the folder of `scratch`.
inline Ran run_program(const std::string& arguments, const ScratchFolder& scratch = {}) {
  const std::string err_file = scratch.file("stderr");
  const std::string command =
      "cd '" + scratch.path().string() + "' && '" VRAMLAB_PROGRAM "' " + arguments + " 2>'" + err_file + "'";
  Ran ran;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    ran.out.append(buffer.data(), n);
  ran.code = WEXITSTATUS(::pclose(pipe));
  ran.err = read_input_file(err_file);
  return ran;
}

}  // namespace vramlab
