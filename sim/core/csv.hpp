// One cell of a CSV file.
#pragma once

#include <string>
#include <string_view>

namespace vramlab {

/// `text` as a CSV cell (RFC 4180): in quotes if it holds a comma, a quote or a line break.
std::string csv_cell(std::string_view text);

}  // namespace vramlab
