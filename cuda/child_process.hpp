// A second process of this program that answers what it is asked, a line at a time.
#pragma once

#include <string>

#include <sys/types.h>

#include "core/units.hpp"

namespace vramlab {

/// The two ends of a conversation over pipes. The other side ends when this object dies, and also when this
/// process is killed: its input is over then.
class ChildProcess {
 public:
  /// Starts `program` with `verb`, a hidden one, for the visible card number `device`. `role` says in
  /// messages what it is for, "the process that …". Throws InputError if it does not start.
  ChildProcess(const std::string& program, const std::string& verb, std::string role, int device = 0);

  /// A conversation over open files, which are closed when this dies: what is written to `to`, and read from
  /// `from`.
  ChildProcess(int to, int from, std::string role);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Waits for the other side to end; a process that gave no answer is killed.
  ~ChildProcess();

  /// Sends `request`, whole lines, and returns the line that answers it, without its end. Throws InputError
  /// if the other side has ended, or does not answer within `patience`.
  std::string ask(const std::string& request, SimTime patience = std::chrono::seconds{120});

  /// Throws InputError: the process `what`. For answers that cannot be read, too.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void send(const std::string& request);
  void stop() noexcept;

  std::string role_;
  pid_t process_ = -1;
  int to_ = -1;
  int from_ = -1;
  bool hangs_ = false;
};

/// This program, to be started again.
inline constexpr const char* kOwnProgram = "/proc/self/exe";

}  // namespace vramlab
