// How verbs answer: a verdict, a table, the page of --report, the files written; or JSON alone.
#pragma once

#include <string>
#include <utility>

#include "cli/verb.hpp"
#include "lab/json.hpp"
#include "report/table.hpp"

namespace vramlab {

/// Adds --report.
void add_report_option(Options& options);

class ReportFile {
 public:
  /// Of a verb with or without --report. Throws InputError if it is given and this build has no page, or if
  /// its name does not end in .html.
  explicit ReportFile(const Arguments& arguments);

  [[nodiscard]] bool wanted() const { return !file_.empty(); }
  [[nodiscard]] const std::string& file() const { return file_; }

  void add(Json section) { sections_.push_back(std::move(section)); }

  /// Writes the page. Throws InputError if no section was added, or if it cannot be written.
  void write() const;

 private:
  std::string file_;
  Json sections_ = Json::array();
};

// How verbs answer: a verdict, a table, the files written; or JSON alone.

/// Adds --json, --format and --quiet.
void add_output_options(Options& options);

/// Prints what a verb has to say. With `--json -` standard output carries the
/// JSON and nothing else.
class Output {
 public:
  explicit Output(const Arguments& arguments);

  /// A line of text for people.
  void line(const std::string& text);

  /// A table in the format asked for.
  void table(const Table& table);

  /// Notes that `path` was written.
  void wrote(const std::string& path);

  /// What --report asks for, where the verb has it.
  [[nodiscard]] ReportFile& report() { return report_; }

  /// Writes the report where it is wanted.
  void write_report();

  /// Writes `json` where --json asked for it, if it did.
  void json(const Json& json);

 private:
  void print(const std::string& text) const;

  std::string json_file_;
  TableFormat format_;
  bool quiet_;
  ReportFile report_;
};

}  // namespace vramlab
