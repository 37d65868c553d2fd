#include "cli/report_file.hpp"

#include "lab/report_sections.hpp"
#include "report/html_page.hpp"
#include "report/output_file.hpp"
#include "sim/core/error.hpp"

namespace vramlab {

namespace po = boost::program_options;

void add_report_option(Options& options) {
  options.add_options()("report", po::value<std::string>()->default_value("")->value_name("FILE.html"),
                        "write a page with charts, which opens in a browser without a network");
}

ReportFile::ReportFile(const Arguments& arguments)
    : file_(arguments.contains("report") ? arguments["report"].as<std::string>() : "") {
  if (!wanted()) return;
  if (!file_.ends_with(".html")) throw InputError(file_, "a report's name must end in .html.");
  require_html_page();
}

void ReportFile::write() const {
  if (sections_.empty()) throw InputError("--report", "there is no page for scenarios of this kind.");
  std::string titles;
  for (const Json& section : sections_) {
    if (!titles.empty()) titles += ", ";
    titles += section["title"].get<std::string>();
  }
  write_file(file_, report_page("vramlab: " + titles, sections_, VRAMLAB_VERSION));
}

}  // namespace vramlab
