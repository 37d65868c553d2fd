// Ctrl-C as a wish to stop: work that is under way ends, nothing new begins, and what is done is kept.
#pragma once

#include <atomic>

namespace vramlab {

/// While it lives, the first SIGINT or SIGTERM sets a flag; a second one ends the program as usual.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] const std::atomic<bool>& flag() const;
};

}  // namespace vramlab
