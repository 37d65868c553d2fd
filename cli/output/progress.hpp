// Long work: how far it has come, and Ctrl-C as a wish to stop it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

#include "cli/verb.hpp"

namespace vramlab {

/// Shows nothing unless standard error is a terminal and the work lasts over a second.
class Progress {
 public:
  Progress(std::size_t total, std::string what, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more piece is done; from any thread.
  void step();

 private:
  using Clock = std::chrono::steady_clock;
  void clear();

  std::mutex mutex_;
  std::size_t total_;
  std::size_t done_ = 0;
  std::string what_;
  bool shown_;
  std::size_t width_ = 0;
  Clock::time_point begin_;
  Clock::time_point last_;
};

// Ctrl-C as a wish to stop: work that is under way ends, nothing new begins, and what is done is kept.

/// While it lives, the first SIGINT or SIGTERM sets a flag; a second one ends the program as usual. Signals
/// of a program that is not `ours` are left alone.
class Interrupt {
 public:
  explicit Interrupt(bool ours);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] const std::atomic<bool>& flag() const;

 private:
  bool ours_;
};

/// Work of a verb on one piece after another, with progress and until Ctrl-C.
class LongWork {
 public:
  /// On `total` pieces, 0 = nobody knows how many, called `what`: "files". Output and arguments say who sees
  /// it.
  LongWork(std::size_t total, std::string what, const Arguments& arguments, const Output& output);

  /// Does `work` for each of `pieces`. Returns false if it was stopped before the last.
  template <class Pieces, class Work>
  bool for_each(Pieces&& pieces, const Work& work) {
    for (auto&& piece : pieces) {
      if (is_stopped()) return false;
      work(piece);
      step();
    }
    return true;
  }

  /// Whether no other piece may begin; says how far it came when that is first known.
  bool is_stopped();
  /// Whether it was said.
  [[nodiscard]] bool was_stopped() const { return said_; }
  /// A piece is done.
  void step();

 private:
  std::size_t total_;
  std::size_t done_ = 0;
  bool said_ = false;
  std::string what_;
  Interrupt interrupt_;
  Progress progress_;
};

}  // namespace vramlab
