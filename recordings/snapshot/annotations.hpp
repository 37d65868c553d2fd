// Marks of a program in the history of its snapshot: those of a file beside it, or the snapshot's own notes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "recordings/snapshot/marks.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// A moment right before an entry of a history; its label names the stretch that ends there.
struct PlacedMark {
  std::size_t entry = 0;  ///< the number of entries at the end
  std::string label;
};

/// Places of marks in a history: an entry belongs to the next mark that is not earlier.
std::vector<PlacedMark> place_marks(std::span<const TraceEntry> trace, const std::vector<StepMark>& marks);

/// The stretches that the snapshot itself names, of one device: its external annotations (of nested ones the
/// innermost), else the `user_metadata` of the entries, else their `compile_context`. What comes before a
/// named stretch and is in none is called "before NAME".
std::vector<PlacedMark> own_marks(const TorchSnapshot& snapshot, int device);

}  // namespace vramlab
