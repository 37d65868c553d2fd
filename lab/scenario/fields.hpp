// Tables of keys (core/records) and JSON: objects are checked against a table and read into its section.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/records/record.hpp"
#include "core/units.hpp"
#include "lab/json.hpp"

namespace vramlab {

/// Checks `json` against `fields`; adds everything wrong to `problems` with the JSON pointer under
/// `pointer`. A value that passes has the kind its field says.
void check_fields(const Json& json, const std::vector<Field>& fields, bool open, const std::string& pointer,
                  std::vector<Problem>& problems);

/// Throws InputError with everything that `record` does not allow in `json`; `where` is put in front of the
/// JSON pointers.
void require_fields(const Json& json, const RecordBase& record, const std::string& where);

/// Adds the names that values of kind `bounds` have and their fields do not list. `json` passed its checks:
/// an unknown name is found together with what a reader's rules between keys find.
void check_range_names(const Json& json, const std::vector<Field>& fields, const std::string& pointer,
                       std::vector<Problem>& problems);

/// Puts the values of `json`, which passed the checks of `record`, into `section`. What is read as it stands
/// (FieldKind model, batch_size, any_list, and objects without a table) is a `const Json*` into `json`.
void read_into(const Json& json, const RecordBase& record, void* section);

/// A section of such values; what is not given has its default.
template <class Section>
Section read_section(const Json& json, const Record<Section>& record) {
  Section section;
  read_into(json, record, &section);
  return section;
}

/// What FieldKind::batch_size may be instead of a number: search the batch first.
inline constexpr const char* kAutoBatchSize = "auto_batch_size";

/// The bytes of a value that passed as FieldKind::size.
Bytes size_value(const Json& json);

/// The number of a value that passed as FieldKind::bound; true is 1.
double bound_value(const Json& json);

}  // namespace vramlab
