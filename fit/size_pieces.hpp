// Sizes that follow one form at some shapes and another at others, as workspaces of a library do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fit/exact_form.hpp"

namespace vramlab {

/// Some of the samples, and a form for them.
struct SizePiece {
  SizeForm form;
  std::vector<std::size_t> samples;  ///< their numbers, rising
};

/// Looks for forms of one of the `candidates` (likeliest first), with or without a constant, that give at
/// least three samples to the byte; samples within 512 bytes of such a form belong to it too, for libraries
/// pad their workspaces by some bytes (workload-models.md, section 2). Pieces share no sample; those with
/// most samples come first. At most 64 samples are looked at.
std::vector<SizePiece> find_pieces(const std::vector<SizeSample>& samples,
                                   std::span<const std::uint32_t> candidates);

}  // namespace vramlab
