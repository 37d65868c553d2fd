#include "cli/interrupt.hpp"

#include <array>
#include <csignal>

namespace vramlab {
namespace {

std::atomic<bool> stop_wanted{false};  // a handler can reach nothing but statics
static_assert(std::atomic<bool>::is_always_lock_free);

constexpr std::array kSignals{SIGINT, SIGTERM};

extern "C" void want_stop(int signal) {
  stop_wanted.store(true);
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  stop_wanted.store(false);
  for (const int signal : kSignals) std::signal(signal, want_stop);
}

Interrupt::~Interrupt() {
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
}

const std::atomic<bool>& Interrupt::flag() const { return stop_wanted; }

}  // namespace vramlab
