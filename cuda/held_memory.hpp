// Memory of the card that is held and not used: it makes the card look smaller.
#pragma once

#include <vector>

#include "cuda/cuda_segments.hpp"

namespace vramlab {

/// Some bytes of the current device, given back when this dies.
class HeldMemory {
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
  bool take(Bytes size);
  void give_back();

  CudaSegments segments_;
  std::vector<Piece> pieces_;
  Bytes held_ = 0;
};

}  // namespace vramlab
