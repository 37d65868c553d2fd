// Models made from recordings, as JSON.
#pragma once

#include <string>

#include "lab/field_table.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// The file of a model: everything that `read_recorded_spec` needs. Callers add about, sources and the like.
Json recorded_model_json(const RecordedSpec& spec);

/// Reads what `recorded_model_json` wrote; `json` has passed the field table of its kind. Throws InputError
/// with `where` and the JSON pointer for what is damaged.
RecordedSpec read_recorded_spec(const Json& json, const std::string& where);

/// `json` as text: one line a key, two levels deep, so that long lists stay on one line.
std::string model_file_text(const Json& json);

/// Fields of the kind "recorded", beside those that all models have.
std::vector<Field> recorded_model_fields();

}  // namespace vramlab
