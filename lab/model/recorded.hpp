// Models made from recordings, as JSON; their program as text.
#pragma once

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

/// Forms, each a list of numbers: product, numerator and denominator of every term, then, if it grows in
/// steps, their size and where it ends (0 = nowhere).
Json size_forms_json(const std::vector<SizeForm>& forms);

/// Reads what `size_forms_json` wrote; what is in range only `check_recorded_spec` knows.
std::vector<SizeForm> read_size_forms(const Json& json);

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

/// The operations in order, separated by spaces. The groups of allocations are those of their tensors.
std::string program_text(const RecordedSpec& spec);

/// Reads such a text into `spec`, which has its tensors. Throws InputError without a place for a word that is
/// no operation.
void read_program_text(const std::string& text, RecordedSpec& spec);

}  // namespace vramlab
