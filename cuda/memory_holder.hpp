// Memory of the card that is held and not used: by this process, and by a second one.
#pragma once

#include <string>
#include <vector>

#include "core/units.hpp"
#include "cuda/child_process.hpp"
#include "cuda/cuda_segments.hpp"

namespace vramlab {

/// Some bytes of the current device, given back when this dies.
class CardBallast {
 public:
  [[nodiscard]] Bytes held() const { return held_; }

  /// Holds `bytes`, rounded up to what the card gives out at least (2 MiB, R10.1), or what can be had of
  /// them.
  void hold(Bytes bytes);

 private:
  struct Piece {
    Address base = 0;
    Bytes size = 0;
  };

  CudaSegments segments_;
  std::vector<Piece> pieces_;
  Bytes held_ = 0;
};

/// A second process that holds memory of the card, so that an OOM caused by others is a real one: starts this
/// program again as a holder and tells it how much to hold. It ends, and the card has its memory back, when
/// this object dies, and also when this process is killed.
class MemoryHolder {
 public:
  /// `program` = the vramlab binary, `device` = the visible card. Throws InputError if it does not start or
  /// has no such card.
  explicit MemoryHolder(int device = 0, const std::string& program = kOwnProgram);

  /// Makes it hold `bytes` (rounded up to 2 MiB), its context aside, or what it can get of them. Returns what
  /// it holds then.
  Bytes hold(Bytes bytes);

  /// Makes it hold as much as it takes until `bytes` of the card are free (at most 2 MiB less). Returns what
  /// it holds then.
  Bytes leave_free(Bytes bytes);

 private:
  Bytes ask(const std::string& request);

  ChildProcess process_;
};

/// The holder's side, on the visible card number `device`: obeys "hold N" and "leave N" on standard input,
/// answers each with the bytes held on standard output, and returns at the end of the input.
int run_memory_holder(int device);

/// The hidden verb that runs it.
inline constexpr const char* kHolderVerb = "hold-card-memory";

}  // namespace vramlab
