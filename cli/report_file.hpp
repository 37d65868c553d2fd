// The page that --report asks for: sections are added as results come, the file is written at the end.
#pragma once

#include <string>
#include <utility>

#include "cli/verb.hpp"
#include "lab/json_text.hpp"

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

}  // namespace vramlab
