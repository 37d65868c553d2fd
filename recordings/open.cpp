#include "recordings/open.hpp"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "recordings/pickle/pickle.hpp"
#include "recordings/scripts/allocation_script.hpp"
#include "recordings/scripts/recorded_program.hpp"

namespace vramlab {
namespace {

using Json = nlohmann::json;

enum class Form : std::uint8_t {
  pickle,
  json,   ///< an object, several after each other, or a list of them
  table,  ///< CSV with a header
  prose,  ///< any other text
};

/// What reads a kind of recording.
struct Readers {
  std::vector<ClientProgram> (*programs)(InputFile&, const ReadOptions&) = nullptr;
  std::vector<VerifiedRecording> (*verify)(InputFile&, const ReadOptions&) = nullptr;
  /// Where more was recorded than the programs.
  std::vector<ReplayableRecording> (*replayable)(InputFile&) = nullptr;
};

/// One kind of file: what it is known by, and what reads it.
struct KindRow {
  FileKind kind;
  const char* name;    ///< for people
  const char* ending;  ///< that its files' names usually have, before .gz or .zst; may be empty
  Form form;
  std::vector<std::string> signs;  ///< all of these: keys of JSON, columns of a table, phrases of prose
  Readers readers = {};
};

constexpr Readers kSnapshot{.programs = snapshot_programs, .verify = verify_snapshot};
constexpr Readers kOracleLog{.verify = verify_oracle_log, .replayable = replayable_oracle_log};
constexpr Readers kScript{.programs = script_programs};

// The first row that fits counts: rows with more signs stand before those with fewer.
const std::vector<KindRow>& kind_rows() {
  using enum FileKind;
  static const std::vector<KindRow> rows{
      {snapshot, "a snapshot", ".pickle", Form::pickle, {}, kSnapshot},
      {allocation_script, "an allocation script", ".csv", Form::table, {"op"}, kScript},
      {buffer_list, "a list of buffers", ".csv", Form::table, {"lower", "upper"}},
      {oracle_log, "an oracle log", ".json", Form::json, {"keys", "ops"}, kOracleLog},
      {truth, "a truth file", "", Form::json, {"cap_mib", "marks"}},
      {result, "a result of vramlab compare or run", ".json", Form::json, {"scenario", "policies"}},
      {grid, "a measured grid", "", Form::json, {"total_memory", "rows"}},
      {run_trace, "a trace of a training run", ".jsonl", Form::json, {"iteration", "start_s"}},
      {run_table, "a trace of a training run", ".csv", Form::table, {"iteration", "start_s"}},
      {job_table, "a list of jobs", ".csv", Form::table, {"arrival_s", "duration_s"}},
      {openb_pods, "a list of OpenB pods", "", Form::table, {"num_gpu", "gpu_milli"}},
      {openb_nodes, "a list of OpenB nodes", "", Form::table, {"gpu", "model"}},
      {memory_stats, "torch.cuda.memory_stats()", ".json", Form::json, {"allocated_bytes", "reserved_bytes"}},
      {memory_stats, "torch.cuda.memory_stats()", ".json", Form::json, {"allocated_bytes.all.current"}},
      {scenario, "a scenario", "", Form::json, {"workload", "rows"}},
      {scenario, "a scenario", "", Form::json, {"policies"}},
      {marks, "a file of marks", "", Form::json, {"marks"}},
      {job_list, "a list of jobs", ".json", Form::json, {"jobs"}},
      {model, "a workload model", ".json", Form::json, {"kind"}},
      {oom_message, "an out-of-memory message", ".txt", Form::prose, {"out of memory"}},
      {gavel_trace, "a Gavel trace", "", Form::prose, {"\tpython3 "}},
  };
  return rows;
}

std::string full_name(const KindRow& row) {
  return *row.ending == '\0' ? row.name : std::string(row.name) + " (" + row.ending + ')';
}

/// Keys of the outermost object, or of the objects of an outermost list, up to an error.
struct OuterKeys final : nlohmann::json_sax<Json> {
  std::vector<std::string> keys;
  int depth = 0;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool start_object(std::size_t) override { return ++depth > 0; }
  bool end_object() override { return --depth >= 0; }
  bool key(string_t& name) override {
    if (depth == 1) keys.push_back(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }
};

/// What tells kinds apart.
struct Content {
  Form form = Form::table;
  std::vector<std::string> signs;
  std::string_view text;
};

Content content_of(std::string_view text) {
  if (looks_like_pickle(text)) return {Form::pickle, {}, text};
  OuterKeys outer;
  Json::sax_parse(text, &outer, Json::input_format_t::json, /*strict=*/false, /*ignore_comments=*/true);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (!outer.keys.empty() || (first != std::string_view::npos && text[first] == '{')) {
    return {Form::json, std::move(outer.keys), text};
  }
  const std::vector<CsvRecord> records = csv_records(text);
  return {Form::table, records.empty() ? std::vector<std::string>{} : records.front().cells, text};
}

bool fits(const KindRow& row, const Content& content) {
  const Form form = row.form == Form::prose ? Form::table : row.form;  // any text may be a table
  if (form != content.form) return false;
  return std::all_of(row.signs.begin(), row.signs.end(), [&](const std::string& sign) {
    if (row.form == Form::prose) return content.text.find(sign) != std::string_view::npos;
    return std::find(content.signs.begin(), content.signs.end(), sign) != content.signs.end();
  });
}

const KindRow* row_that_fits(const Content& content) {
  const auto& rows = kind_rows();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const KindRow& row) { return fits(row, content); });
  return found == rows.end() ? nullptr : &*found;
}

struct Opened {
  Form form = Form::table;
  const KindRow* row = nullptr;  ///< none fits: null
  bool empty = false;
};

// A key that is alone in its row may stand in files of other kinds, too: then all of the file is looked at.
Opened look_at(InputFile& file) {
  const std::string_view beginning = file.beginning();
  const Content content = content_of(beginning);
  const KindRow* row = row_that_fits(content);
  if (content.form == Form::json && (row == nullptr || row->signs.size() < 2)) {
    row = row_that_fits(content_of(file.whole()));
  }
  return {content.form, row, beginning.empty()};
}

bool is_named_as(const KindRow& row, const std::filesystem::path& file) {
  std::string_view name = file.native();
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  }
  return *row.ending != '\0' && name.ends_with(row.ending);
}

// The reader of this kind can say what is wrong with a file of this form.
bool is_formed_as(const KindRow& row, const Opened& opened) {
  return !opened.empty && row.form == (opened.form == Form::table ? Form::prose : opened.form);
}

[[noreturn]] void refuse(const InputFile& file, const Opened& opened,
                         const std::vector<const KindRow*>& wanted) {
  std::string text = "is of no kind that is known here";
  if (opened.row != nullptr) text = "is " + full_name(*opened.row);
  if (opened.empty) text = "is empty";
  std::vector<std::string> names;
  for (const KindRow* row : wanted) names.push_back(full_name(*row));
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "; give " : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  throw InputError(file.name(), text + '.');
}

const KindRow& require_row(InputFile& file, const std::function<bool(const KindRow&)>& is_wanted) {
  const Opened opened = look_at(file);
  if (opened.row != nullptr && is_wanted(*opened.row)) return *opened.row;
  std::vector<const KindRow*> wanted;
  for (const KindRow& row : kind_rows()) {
    if (is_wanted(row)) wanted.push_back(&row);
  }
  if (opened.row != nullptr) refuse(file, opened, wanted);
  for (const KindRow* row : wanted) {
    if (is_named_as(*row, file.path())) return *row;
  }
  for (const KindRow* row : wanted) {
    if (is_formed_as(*row, opened)) return *row;
  }
  refuse(file, opened, wanted);
}

template <class Reader>
auto read_with(const std::filesystem::path& file, Reader Readers::*reader, const ReadOptions& options) {
  InputFile in(file);
  const KindRow& row = require_row(in, [&](const KindRow& one) { return one.readers.*reader != nullptr; });
  return (row.readers.*reader)(in, options);
}

}  // namespace

FileKind kind_of(InputFile& file) {
  const KindRow* row = look_at(file).row;
  return row == nullptr ? FileKind::unknown : row->kind;
}

FileKind require_kind(InputFile& file, const std::vector<FileKind>& wanted) {
  return require_row(file,
                     [&](const KindRow& row) {
                       return std::find(wanted.begin(), wanted.end(), row.kind) != wanted.end();
                     })
      .kind;
}

std::vector<ClientProgram> read_client_programs(const std::filesystem::path& file,
                                                const ReadOptions& options) {
  return read_with(file, &Readers::programs, options);
}

std::vector<VerifiedRecording> verify_recording(const std::filesystem::path& file,
                                                const ReadOptions& options) {
  return read_with(file, &Readers::verify, options);
}

std::vector<ReplayableRecording> read_replayable(const std::filesystem::path& file) {
  InputFile in(file);
  const Readers& read = require_row(in, [](const KindRow& row) {
                          return row.readers.replayable != nullptr || row.readers.programs != nullptr;
                        }).readers;
  return read.replayable != nullptr ? read.replayable(in) : replayable_programs(file, read.programs(in, {}));
}

}  // namespace vramlab
