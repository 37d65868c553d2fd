// Runs the program and kills it when a file has so many lines: at a moment of its work, not of a clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "recordings/input_file.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {

/// Whole lines of `file`; 0 if it is not there.
inline std::int64_t lines_of(const std::string& file) {
  if (!std::filesystem::exists(file)) return 0;
  const std::string text = read_input_file(file);
  return std::count(text.begin(), text.end(), '\n');
}

/// Runs `command` by the shell in the folder of `scratch`, which must `exec` the program, and calls
/// `act(pid)` once `file` has `lines` lines. Returns what waitpid says; without `act` if the program ended
/// before.
template <class Act>
int act_at(const std::string& command, const ScratchFolder& scratch, const std::string& file,
           std::int64_t lines, const Act& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    const std::string line = "cd '" + scratch.path().string() + "' && " + command;
    ::execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  while (lines_of(scratch.file(file)) < lines) {
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    std::this_thread::sleep_for(std::chrono::microseconds{200});
  }
  act(child);
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace vramlab
