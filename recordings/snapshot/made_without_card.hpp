// A recording that no card took part in: a program's requests as PyTorch's fake tensors show them, and what
// laws say that these do not show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace vramlab {

/// Allocations that fake tensors do not show, and that were put in.
struct SuppliedPart {
  std::string name;               ///< "cuBLAS workspace"
  std::string how;                ///< "measured" on a card, "law" of a source that is named, or "assumed"
  std::string source;             ///< where the size comes from, in words
  std::uint64_t allocations = 0;  ///< how many there are
  Bytes bytes = 0;                ///< most of them in use at once, as requested
};

/// What such a file says of itself: the text of its key `made_without_card`, a JSON object.
struct MadeWithoutCard {
  std::string card;        ///< whose kernels and limits were supposed
  Bytes total_memory = 0;  ///< of that card
  std::string torch;       ///< version of PyTorch that made it, or ""
  std::vector<std::size_t>
      empty_caches;  ///< entries of the history before which the program emptied the cache
  std::vector<SuppliedPart> parts;
};

/// Reads that text; `name` stands for the file in errors. Throws InputError naming what is missing or wrong.
MadeWithoutCard parse_made_without_card(std::string_view text, const std::string& name);

/// What every answer from it has to say: that it was made without a card.
std::string made_sentence(const MadeWithoutCard& made);

/// The same, and one sentence for each part.
std::vector<std::string> sentences_of(const MadeWithoutCard& made);

}  // namespace vramlab
