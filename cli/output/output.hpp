// How verbs answer: a verdict, a table, the page of --report, the files written; or JSON alone.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/verb.hpp"
#include "core/parameter_space.hpp"
#include "lab/json.hpp"
#include "lab/scenario/file.hpp"
#include "policies/contract/policy_set.hpp"
#include "recordings/scripts/client_program.hpp"
#include "report/table.hpp"

namespace vramlab {

struct PredictionQuestion;
class Workers;

/// The programs of the recordings that were read last.
struct KeptPrograms {
  std::string question;  ///< what was asked for: files, and how they were read
  std::shared_ptr<const std::vector<ClientProgram>> programs;
};

/// Another program that has us as a library (capi/vramlab.h) and asks: what it gave and what it hears.
/// Standard streams and signals are then that program's own.
struct LibraryCall {
  std::map<std::string, std::string> texts;  ///< what stands for files of these names; "-" is standard input
  std::shared_ptr<const PolicySet> policies = builtin_policies();  ///< before plugins are added
  std::string text;                                                ///< what the verb has to say to people
  std::string json;                                                ///< what --json - would have printed
  KeptPrograms* kept = nullptr;  ///< where whatif keeps what it read, for the next question; null = nowhere
  EntryWatch watch = {};         ///< hears whatif read a snapshot
  bool wants_page = false;       ///< as --report, without a file
  std::string page;              ///< then: {"title", "sections"} of the page, as JSON
};

/// Prints `text`, or adds it to what `call` hears. Throws InputError if it could not be written.
void print_to(LibraryCall* call, const std::string& text);

/// Adds --report.
void add_report_option(Options& options);

/// Adds --json, --format and --quiet.
void add_output_options(Options& options);

/// Prints what a verb has to say. With `--json -` standard output carries the
/// JSON and nothing else.
class Output {
 public:
  /// Throws InputError for a format there is not, for a report (of a verb that has --report) whose name does
  /// not end in .html or that this build has no page for, and for a file that would be read and overwritten.
  explicit Output(const Arguments& arguments, LibraryCall* call = nullptr,
                  std::shared_ptr<Workers> ranks = nullptr);

  /// A line of text for people.
  void line(const std::string& text);

  /// The same, formatted.
  template <class First, class... More>
  void line(fmt::format_string<First, More...> form, First&& first, More&&... more) {
    line(fmt::format(form, std::forward<First>(first), std::forward<More>(more)...));
  }

  /// A table in the format asked for.
  void table(const Table& table);

  /// The same below an empty line.
  void next_table(const Table& table);

  /// Writes `content` to the file `path` and notes that it did; prints it if `path` is empty.
  void write(const std::string& path, const std::string& content);

  /// Notes that `path` was written.
  void wrote(const std::string& path);

  [[nodiscard]] const std::string& report_file() const { return report_file_; }
  [[nodiscard]] bool wants_report() const {
    return !report_file_.empty() || (call_ != nullptr && call_->wants_page);
  }
  void add_section(Json section) { sections_.push_back(std::move(section)); }

  /// Writes the report where it is wanted. Throws InputError if no section was added.
  void write_report();

  /// Writes `json` where --json asked for it, if it did.
  void json(const Json& json);

  /// Null in the program itself.
  [[nodiscard]] const LibraryCall* call() const { return call_; }

  /// The other ranks of the MPI job that the program is one of; null if it was started alone.
  [[nodiscard]] const std::shared_ptr<Workers>& ranks() const { return ranks_; }

  /// The text that the library's caller gave for the file `name`, or null.
  [[nodiscard]] const std::string* given_text(const std::string& name) const;

  /// The scenario `file`, or the text that was given for it. Throws InputError, also where one of the files
  /// that it names would be overwritten.
  [[nodiscard]] ScenarioDocument scenario(const std::string& file, std::shared_ptr<const PolicySet> policies);

  /// Notes files that the verb reads. Throws InputError where one of them would be overwritten.
  void reads(const std::vector<std::string>& files);

  /// All of them so far, as far as anything is to be written.
  [[nodiscard]] const std::vector<std::string>& inputs() const { return inputs_; }

 private:
  void print(const std::string& text) const;

  LibraryCall* call_;
  std::shared_ptr<Workers> ranks_;
  std::string json_file_;
  TableFormat format_;
  bool quiet_;
  std::string report_file_;
  Json sections_ = Json::array();
  std::optional<std::chrono::seconds> isolation_;  ///< of policies of plugins
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;  ///< every file that the arguments name to be written
  bool is_writing_ = false;           ///< these, or into a folder
};

// How several verbs show parameters of models.

/// "batch 1 to 8, seq 16 to 512".
std::string ranges_text(const std::vector<Parameter>& parameters);

/// Name → [low, high].
Json ranges_json(const std::vector<Parameter>& parameters);

/// Name → value at the point that is asked about.
Json point_json(const PredictionQuestion& question);

}  // namespace vramlab
