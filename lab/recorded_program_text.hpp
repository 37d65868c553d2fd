// The program of a recorded model as text, some four letters an operation.
//
//   a                allocate the next tensor
//   f12  f12/3       free tensor 12; only where group 3 occurs
//   f12@s-1+1:7,8    … of the round before (offset −1, step +1, counted from the start; `e` from the end),
//                    and tensors 7, 8 instead while there is none
//   k5  k5/3         free what the step before kept at rank 5
//   m                make the next extra, unless an earlier step did
//   l0  x            begin of loop 0, end of a loop
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/recorded_spec.hpp"

namespace vramlab {

/// One word for each operation. The groups of allocations are those of their tensors.
std::vector<std::string> program_words(const RecordedSpec& spec);

/// Reads a word; `allocated` and `made` count tensors and extras so far. Empty if it is none.
std::optional<RecordedOp> read_program_word(const std::string& word,
                                            const std::vector<RecordedTensor>& tensors,
                                            std::uint32_t& allocated, std::uint32_t& made);

}  // namespace vramlab
