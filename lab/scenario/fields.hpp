// What an object in a JSON file may hold, declared once: checks, documents and the JSON schema come from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"
#include "lab/json.hpp"

namespace vramlab {

enum class FieldKind : std::uint8_t {
  text,
  integer,
  number,
  boolean,
  size,        ///< "12GiB", "512MiB" or a number of bytes
  choice,      ///< one of some words
  object,      ///< with fields of its own
  list,        ///< of objects with those fields
  values,      ///< an object of integers, one a parameter of the workload
  bounds,      ///< an object of [low, high], one a parameter of the workload
  bound,       ///< a number, true or false, or a size in quotes
  integers,    ///< a list of whole numbers
  texts,       ///< a list of texts, each of one line
  batch_size,  ///< a whole number, or "auto_batch_size"
  model,       ///< a file's name, or a model written in place; checked where models are read
  any_list     ///< a list of any values
};

/// One key of an object.
struct Field {
  std::string key;
  FieldKind kind = FieldKind::text;
  std::string help{};  ///< one sentence, with the unit and the default
  bool required = false;
  double low = 0;   ///< integer, number, size: smallest value allowed
  double high = 0;  ///< … and largest; 0 = no bounds
  std::vector<std::string> choices{};
  std::vector<Field> fields{};  ///< of an object, or of a list's members
  bool open = false;            ///< further keys are allowed; they are checked elsewhere

  [[nodiscard]] bool is_bounded() const { return low <= high && high != 0; }
};

/// Checks `json` against `fields`; adds everything wrong to `problems` with the JSON pointer under
/// `pointer`. A value that passes has the kind its field says.
void check_fields(const Json& json, const std::vector<Field>& fields, bool open, const std::string& pointer,
                  std::vector<Problem>& problems);

/// A JSON schema (draft 7) of an object with `fields`.
Json fields_schema(const std::vector<Field>& fields, bool open);

/// What FieldKind::batch_size may be instead of a number: search the batch first.
inline constexpr const char* kAutoBatchSize = "auto_batch_size";

/// The bytes of a value that passed as FieldKind::size.
Bytes size_value(const Json& json);

/// The number of a value that passed as FieldKind::bound; true is 1.
double bound_value(const Json& json);

// The keys of a file as a document shows them, from the table that also checks them.

/// One key, with what it may hold.
struct FieldRow {
  std::string key;      ///< with the way to it: "device.others[].bytes"
  std::string value;    ///< "text", "whole number", "size", "one of a, b", …
  std::string range;    ///< "1 to 64"; empty if there is none
  std::string meaning;  ///< with its default
  bool required = false;
};

/// All keys of an object with `fields`, each object's own behind it.
std::vector<FieldRow> field_rows(const std::vector<Field>& fields);

}  // namespace vramlab
