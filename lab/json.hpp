// JSON files that people write: read with comments allowed, and where a value stands in their text.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace vramlab {

/// JSON whose objects keep the order of the file.
using Json = nlohmann::ordered_json;

/// Parses `text`; `name` is the file's name for messages. Throws InputError with line and column for broken
/// JSON, and for a key that one object has twice.
Json parse_json(const std::string& text, const std::string& name);

/// The same of a file, plain or compressed. Throws InputError also if it cannot be read.
Json read_json_file(const std::filesystem::path& path);

// Where a value stands in the text of a JSON file, so that it can be rewritten and the rest kept as it is.

/// Bytes [begin, end) of a text.
struct TextPlace {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The place of the value that `path` leads to: keys of objects, and numbers of list members from 0. `text`
/// must be JSON that parse_json accepts; comments are passed over. Empty if there is no such value.
std::optional<TextPlace> json_place(std::string_view text, const std::vector<std::string>& path);

}  // namespace vramlab
