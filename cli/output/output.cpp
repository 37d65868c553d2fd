#include "cli/output/output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>

#include "cli/options.hpp"
#include "core/error.hpp"
#include "lab/isolation.hpp"
#include "lab/model/prediction.hpp"
#include "lab/page/sections.hpp"
#include "report/html_page.hpp"
#include "report/output_file.hpp"

namespace vramlab {

void print_to(LibraryCall* call, const std::string& text) {
  if (call != nullptr) {
    call->text += text;
    return;
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  if (errno != EPIPE) throw InputError("standard output", "could not be written.");
  std::clearerr(
      stdout);  // nobody reads it any more, as behind `head`: what is asked for in files still comes
}

void add_report_option(Options& options) {
  options.add_options()("report", text_value("FILE.html"),
                        "write a page with charts, which opens in a browser without a network");
}

void add_output_options(Options& options) {
  options.add_options()(
      "json", text_value("FILE"),
      "write the result as JSON; - means standard output, and then nothing else goes there")(
      "format", po::value<std::string>()->default_value("text")->value_name("text|md|csv"), "form of tables")(
      "quiet", po::bool_switch(), "print nothing but errors");
}

Output::Output(const Arguments& arguments, LibraryCall* call, std::shared_ptr<Workers> ranks)
    : call_(call),
      ranks_(std::move(ranks)),
      json_file_(text_of(arguments, "json")),
      format_(parse_table_format(text_of(arguments, "format"))),
      quiet_(arguments["quiet"].as<bool>() || json_file_ == "-"),
      report_file_(text_of(arguments, "report")),
      isolation_(chosen_isolation(arguments)),
      outputs_(output_names(arguments)),
      is_writing_(!outputs_.empty() || !text_of(arguments, "trace-dir").empty()) {
  const auto names = with_siblings(input_names(arguments));
  std::ranges::copy_if(names, std::back_inserter(inputs_),
                       [&](const std::string& name) { return given_text(name) == nullptr; });
  require_kept(inputs_, outputs_);
  if (report_file_.empty()) return;
  if (!report_file_.ends_with(".html")) throw InputError(report_file_, "a report's name must end in .html.");
  require_html_page();
}

void Output::line(const std::string& text) { print(text + '\n'); }

void Output::table(const Table& table) { print(table.format(format_)); }

void Output::next_table(const Table& table) { print('\n' + table.format(format_)); }

void Output::write(const std::string& path, const std::string& content) {
  if (path.empty()) return print(content);
  write_file(path, content);
  wrote(path);
}

void Output::wrote(const std::string& path) { line("wrote " + path); }

void Output::write_report() {
  if (!wants_report()) return;
  if (sections_.empty() && report_file_.empty()) return;
  if (sections_.empty()) throw InputError("--report", "there is no page for scenarios of this kind.");
  std::string titles;
  for (const Json& section : sections_) {
    if (!titles.empty()) titles += ", ";
    titles += section["title"].get<std::string>();
  }
  if (call_ != nullptr && call_->wants_page) {
    Json page{{"title", titles}, {"sections", nullptr}};
    page["sections"].swap(sections_);  // maps are long: no copy is made
    call_->page = page.dump(-1, ' ', false, Json::error_handler_t::replace);
    page["sections"].swap(sections_);
  }
  if (!report_file_.empty()) {
    write(report_file_, report_page("vramlab: " + titles, sections_, VRAMLAB_VERSION));
  }
}

const std::string* Output::given_text(const std::string& name) const {
  if (call_ == nullptr) return nullptr;
  const auto found = call_->texts.find(name);
  return found == call_->texts.end() ? nullptr : &found->second;
}

ScenarioDocument Output::scenario(const std::string& file, std::shared_ptr<const PolicySet> policies) {
  const std::string* text = given_text(file);
  ScenarioDocument document = text != nullptr ? parse_document(*text, file, std::move(policies))
                                              : read_document(file, std::move(policies));
  if (is_writing_) reads(with_siblings(files_named_by(document)));
  if (!isolation_) return document;
  if (call_ != nullptr) throw InputError("--isolate", "is for the program: a library makes no processes.");
  return isolated(std::move(document), *isolation_);
}

void Output::reads(const std::vector<std::string>& files) {
  if (!is_writing_) return;
  require_kept(files, outputs_);
  inputs_.insert(inputs_.end(), files.begin(), files.end());
}

void Output::json(const Json& json) {
  if (json_file_.empty() && call_ == nullptr) return;
  // Names of files may hold bytes that are not UTF-8; JSON may not.
  std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  if (json_file_ == "-" && call_ == nullptr) return print_to(nullptr, text);
  if (!json_file_.empty() && json_file_ != "-") write(json_file_, text);
  if (call_ != nullptr) call_->json = std::move(text);
}

void Output::print(const std::string& text) const {
  if (!quiet_) print_to(call_, text);
}

std::string ranges_text(const std::vector<Parameter>& parameters) {
  std::string text;
  for (const Parameter& p : parameters) {
    text += fmt::format("{}{} {} to {}", text.empty() ? "" : ", ", p.name, p.low, p.high);
  }
  return text;
}

Json ranges_json(const std::vector<Parameter>& parameters) {
  Json json = Json::object();
  for (const Parameter& parameter : parameters) json[parameter.name] = {parameter.low, parameter.high};
  return json;
}

Json point_json(const PredictionQuestion& question) {
  Json json = Json::object();
  for (std::size_t p = 0; p < question.point.size(); ++p) {
    json[question.model->parameters().parameters[p].name] = question.point[p];
  }
  return json;
}

}  // namespace vramlab
