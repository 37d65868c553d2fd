// Where a value stands in the text of a JSON file, so that it can be rewritten and the rest kept as it is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramlab {

/// Bytes [begin, end) of a text.
struct TextPlace {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The place of the value that `path` leads to: keys of objects, and numbers of list members from 0. `text`
/// must be JSON that parse_json accepts; comments are passed over. Empty if there is no such value.
std::optional<TextPlace> json_place(std::string_view text, const std::vector<std::string>& path);

}  // namespace vramlab
