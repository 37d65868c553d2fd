#include "cli/output/output.hpp"

#include <cstdio>

#include "core/error.hpp"
#include "lab/page/sections.hpp"
#include "report/html_page.hpp"
#include "report/output_file.hpp"

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

namespace {

namespace po = boost::program_options;

void print_all(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw InputError("standard output", "could not be written.");
  }
}

}  // namespace

void add_output_options(Options& options) {
  options.add_options()(
      "json", po::value<std::string>()->default_value("")->value_name("FILE"),
      "write the result as JSON; - means standard output, and then nothing else goes there")(
      "format", po::value<std::string>()->default_value("text")->value_name("text|md|csv"), "form of tables")(
      "quiet", po::bool_switch(), "print nothing but errors");
}

Output::Output(const Arguments& arguments)
    : json_file_(arguments["json"].as<std::string>()),
      format_(parse_table_format(arguments["format"].as<std::string>())),
      quiet_(arguments["quiet"].as<bool>() || json_file_ == "-"),
      report_(arguments) {}

void Output::line(const std::string& text) { print(text + '\n'); }

void Output::table(const Table& table) { print(table.format(format_)); }

void Output::wrote(const std::string& path) { line("wrote " + path); }

void Output::write_report() {
  if (!report_.wanted()) return;
  report_.write();
  wrote(report_.file());
}

void Output::json(const Json& json) {
  if (json_file_.empty()) return;
  // Names of files may hold bytes that are not UTF-8; JSON may not.
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  if (json_file_ == "-") return print_all(text);
  write_file(json_file_, text);
  wrote(json_file_);
}

void Output::print(const std::string& text) const {
  if (!quiet_) print_all(text);
}

}  // namespace vramlab
