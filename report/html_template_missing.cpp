// Stands in for the generated source where npm's packages are not installed.
#include "report/html_page.hpp"

namespace vramlab {

std::string_view html_template() { return {}; }

}  // namespace vramlab
