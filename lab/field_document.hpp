// The keys of a file as a document shows them, from the table that also checks them.
#pragma once

#include <string>
#include <vector>

#include "lab/field_table.hpp"

namespace vramlab {

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
