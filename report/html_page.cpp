#include "report/html_page.hpp"

#include "core/error.hpp"

namespace vramlab {

std::string xml_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return safe;
}

namespace {

// Inside a script element only "</script" and "<!--" mean anything, and a string may hold either.
std::string escaped_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char& c : json) out += c == '<' ? "\\u003c" : std::string_view{&c, 1};
  return out;
}

}  // namespace

void require_html_page() {
  if (!html_template().empty()) return;
  throw InputError("--report",
                   "this build has no chart library. Run scripts/setup (it calls npm ci in report/html), "
                   "then build again.");
}

std::string html_page(std::string_view title, std::string_view json, std::string_view version) {
  require_html_page();
  std::string_view rest = html_template();
  std::string page;
  const auto fill = [&](std::string_view mark, const std::string& text) {
    const std::size_t at = rest.find(mark);
    if (at == std::string_view::npos)
      throw InternalError("the report's template has no " + std::string{mark});
    page.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  };
  fill("%TITLE%", xml_text(title));
  fill("%VERSION%", xml_text(version));
  fill("%DATA%", escaped_json(json));
  return page.append(rest);
}

}  // namespace vramlab
