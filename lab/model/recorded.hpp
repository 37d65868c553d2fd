// Models made from recordings, as JSON; their program as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/scenario/fields.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// The file of a model: everything that `read_recorded_spec` needs. Callers add about, sources and the like.
Json recorded_model_json(const RecordedSpec& spec);

/// Reads what `recorded_model_json` wrote; `json` has passed the field table of its kind. Throws InputError
/// with `where` and the JSON pointer for what is damaged.
RecordedSpec read_recorded_spec(const Json& json, const std::string& where);

/// `json` as text: one line a key, two levels deep, so that long lists stay on one line.
std::string model_file_text(const Json& json);

/// Keys of the kind "recorded", beside those that all models have.
std::vector<Row<RecordedSpec>> recorded_model_rows();

// The program of a recorded model as text, some four letters an operation.
//
//   a                allocate the next tensor
//   f12  f12/3       free tensor 12; only where group 3 occurs
//   f12@s-1+1:7,8    … of the round before (offset −1, step +1, counted from the start; `e` from the end),
//                    and tensors 7, 8 instead while there is none
//   k5  k5/3         free what the step before kept at rank 5
//   m                make the next extra, unless an earlier step did
//   l0  x            begin of loop 0, end of a loop

/// One word for each operation. The groups of allocations are those of their tensors.
std::vector<std::string> program_words(const RecordedSpec& spec);

/// Reads a word; `allocated` and `made` count tensors and extras so far. Empty if it is none.
std::optional<RecordedOp> read_program_word(const std::string& word,
                                            const std::vector<RecordedTensor>& tensors,
                                            std::uint32_t& allocated, std::uint32_t& made);

}  // namespace vramlab
