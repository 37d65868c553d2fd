// Reads JSON files that people write: comments are allowed, a key given twice is an error.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace vramlab {

/// JSON whose objects keep the order of the file.
using Json = nlohmann::ordered_json;

/// Parses `text`; `name` is the file's name for messages. Throws InputError with line and column for broken
/// JSON, and for a key that one object has twice.
Json parse_json(const std::string& text, const std::string& name);

/// The same of a file, plain or compressed. Throws InputError also if it cannot be read.
Json read_json_file(const std::filesystem::path& path);

}  // namespace vramlab
