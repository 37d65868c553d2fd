// Idle reserved memory, and the blocks that keep it from being given back.
#pragma once

#include <vector>

#include "recordings/replay/program_replay.hpp"

namespace vramlab {

/// Idle memory that goes back to the card when its blocks are gone: of a segment, or of the pages of an
/// expandable segment at whose ends they lie.
struct Pin {
  /// What holds it. `nothing`: empty_cache gives it back. `pool`: a private pool in use, which keeps what it
  /// has. `blocks`: blocks in use.
  enum class Holder : std::uint8_t { blocks, pool, nothing };

  Holder holder = Holder::blocks;
  Bytes idle = 0;  ///< bytes of it
  Bytes size = 0;  ///< of the blocks that hold it
  std::vector<ProgramBlock>
      blocks;  ///< those; the oldest first. Blocks of the allocator itself have no number
};

/// All idle memory of one moment, each byte once: the sum is reserved − active. What blocks hold comes first,
/// each in order of bytes.
std::vector<Pin> pins_of(const PlacedBlocks& placed);

}  // namespace vramlab
