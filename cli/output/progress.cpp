#include "cli/output/progress.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output/output.hpp"

namespace vramlab {
namespace {

// "312 of 1000 runs", "12 probes" where nobody knows of how many.
std::string count_text(std::size_t done, std::size_t total, const std::string& what) {
  return total == 0 ? fmt::format("{} {}", done, what) : fmt::format("{} of {} {}", done, total, what);
}

// "312 of 1000 runs, 2 min left". `seconds` passed until `done` of `total` were done.
std::string progress_text(std::size_t done, std::size_t total, const std::string& what, double seconds) {
  const std::string text = count_text(done, total, what);
  if (done == 0 || done >= total) return text;
  const double left = seconds / static_cast<double>(done) * static_cast<double>(total - done);
  if (left < 90) return text + fmt::format(", {:.0f} s left", left);
  if (left < 5400) return text + fmt::format(", {:.0f} min left", left / 60);
  return text + fmt::format(", {:.1f} h left", left / 3600);
}

std::atomic<bool> stop_wanted{false};  // a handler can reach nothing but statics
static_assert(std::atomic<bool>::is_always_lock_free);

constexpr std::array kSignals{SIGINT, SIGTERM};

extern "C" void want_stop(int signal) {
  stop_wanted.store(true);
  std::signal(signal, SIG_DFL);
}

}  // namespace

Progress::Progress(std::size_t total, std::string what, bool quiet)
    : total_(total),
      what_(std::move(what)),
      shown_(!quiet && ::isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()),
      last_(begin_) {}

Progress::~Progress() { clear(); }

void Progress::step() {
  const std::lock_guard lock{mutex_};
  ++done_;
  const auto now = Clock::now();
  if (!shown_ || now - begin_ < std::chrono::seconds{1} || now - last_ < std::chrono::milliseconds{200})
    return;
  last_ = now;
  const std::string text =
      progress_text(done_, total_, what_, std::chrono::duration<double>(now - begin_).count());
  clear();
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  width_ = text.size();
}

void Progress::clear() {
  if (width_ > 0) fmt::print(stderr, "\r{:{}}\r", "", width_);
  width_ = 0;
}

Interrupt::Interrupt(bool ours) : ours_(ours) {
  if (!ours_) return;
  stop_wanted.store(false);
  for (const int signal : kSignals) std::signal(signal, want_stop);
}

Interrupt::~Interrupt() {
  if (!ours_) return;
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
}

const std::atomic<bool>& Interrupt::flag() const {
  static constinit std::atomic<bool> never{false};
  return ours_ ? stop_wanted : never;
}

LongWork::LongWork(std::size_t total, std::string what, const Arguments& arguments, const Output& output)
    : total_(total),
      what_(std::move(what)),
      interrupt_(output.call() == nullptr),
      progress_(total, what_, output.call() != nullptr || arguments["quiet"].as<bool>()) {}

bool LongWork::is_stopped() {
  if (!interrupt_.flag()) return false;
  if (!said_) fmt::print(stderr, "Stopped after {}.\n", count_text(done_, total_, what_));
  said_ = true;
  return true;
}

void LongWork::step() {
  ++done_;
  progress_.step();
}

}  // namespace vramlab
