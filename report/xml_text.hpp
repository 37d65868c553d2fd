// Text inside XML, SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace vramlab {

/// `text` as content or as a value in double quotes; "?" stands for control characters, which XML 1.0 has no
/// way to write.
std::string xml_text(std::string_view text);

}  // namespace vramlab
