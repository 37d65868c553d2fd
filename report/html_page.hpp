// The page that --report writes: one file with its charts, which opens without a network; text inside XML and
// HTML.
#pragma once

#include <string>
#include <string_view>

namespace vramlab {

/// `text` as content or as a value in double quotes; "?" stands for control characters, which XML 1.0 has no
/// way to write.
std::string xml_text(std::string_view text);

/// The page with `title` in its head and `json`, the report (sections of lab/page/sections.hpp), in its
/// body. Throws InputError, saying how to get it, if this build was made without the chart library.
std::string html_page(std::string_view title, std::string_view json, std::string_view version);

/// Throws the same error before any work is done.
void require_html_page();

/// The page with %TITLE%, %VERSION% and %DATA% in their places; empty in a build without the chart library.
std::string_view html_template();

}  // namespace vramlab
