#include "recordings/scripts/allocation_script.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

using Kind = ClientAction::Kind;

enum Column : std::size_t { op, id, bytes, stream, pool, text, column_count };
constexpr std::array<const char*, column_count> kColumns{"op", "id", "bytes", "stream", "pool", "text"};

/// Which columns an op must have, and which it may.
struct OpRule {
  Kind kind;
  std::vector<Column> needs;
  std::vector<Column> takes;
};

const std::vector<OpRule>& op_rules() {
  static const std::vector<OpRule> rules{
      {Kind::alloc, {id, bytes}, {stream, pool}},
      {Kind::free, {id}, {}},
      {Kind::record_stream, {id, stream}, {}},
      {Kind::sync, {}, {stream}},
      {Kind::empty_cache, {}, {}},
      {Kind::reset_peak, {}, {}},
      {Kind::settings, {}, {text}},
      {Kind::pool_new, {pool}, {text}},
      {Kind::pool_del, {pool}, {}},
      {Kind::capture_begin, {}, {stream, pool}},
      {Kind::capture_end, {}, {stream, pool}},
      {Kind::mark, {text}, {}},
  };
  return rules;
}

constexpr std::array<const char*, 3> kPoolKinds{"plain", "use_on_oom", "no_split"};

std::string in_quotes(std::string_view value) { return '"' + std::string(value.substr(0, 60)) + '"'; }

class ScriptReader {
 public:
  ScriptReader(const std::string& name, std::optional<TorchVersion> torch) : name_(name) {
    program_.file = name;
    if (!torch) return;
    program_.torch_from = "given";
    program_.settings.torch = settings_.torch = *torch;
  }

  ClientProgram read(std::string_view source) {
    const std::vector<CsvRecord> records = csv_records(source);
    if (records.empty())
      fail("is empty. An allocation script begins with the header op,id,bytes,stream,pool,text");
    if (!problems_.empty() || !read_header(records.front())) throw InputError(std::move(problems_));
    for (std::size_t i = 1; i < records.size(); ++i) {
      ClientAction action{};
      if (read_line(records[i], action)) program_.actions.push_back(action);
    }
    if (!problems_.empty()) throw InputError(std::move(problems_));
    return std::move(program_);
  }

 private:
  struct PoolRecord {
    ProgramPool number = 0;
    bool graph = false;
    bool deleted = false;
    std::uint32_t line = 0;
  };
  struct Capture {
    StreamId stream = 0;
    ProgramPool pool = 0;
  };
  struct LiveId {
    ProgramBlock block = 0;
    std::uint32_t line = 0;
  };

  // Notes the problem at the line being read.
  bool fail(std::string what) {
    problems_.push_back({name_ + ":" + std::to_string(line_), std::move(what)});
    return false;
  }

  bool read_header(const CsvRecord& record) {
    line_ = record.line;
    if (record.fault) return fail(record.fault->what);
    const std::vector<std::string> known(kColumns.begin(), kColumns.end());
    for (const std::string& cell : record.cells) {
      const auto found = std::find(known.begin(), known.end(), cell);
      if (found == known.end()) {
        fail(in_quotes(cell) + " is not a column of an allocation script." + suggest_name(cell, known) +
             " The header is op,id,bytes,stream,pool,text");
        continue;
      }
      const auto column = static_cast<Column>(found - known.begin());
      if (std::find(columns_.begin(), columns_.end(), column) != columns_.end()) {
        fail("column " + in_quotes(cell) + " is there twice.");
      }
      columns_.push_back(column);
    }
    if (problems_.empty() && std::find(columns_.begin(), columns_.end(), op) == columns_.end()) {
      fail("the header lacks the column \"op\". It is op,id,bytes,stream,pool,text");
    }
    return problems_.empty();
  }

  bool read_line(const CsvRecord& record, ClientAction& action) {
    line_ = record.line;
    cells_ = {};
    if (record.fault) {
      line_ = record.fault->line;
      return fail(record.fault->what);
    }
    if (record.cells.size() > columns_.size()) {
      return fail(std::to_string(record.cells.size()) + " cells, but the header names " +
                  std::to_string(columns_.size()) + ". Put a text that holds commas in double quotes.");
    }
    for (std::size_t i = 0; i < record.cells.size(); ++i) cells_[columns_[i]] = record.cells[i];
    const OpRule* rule = find_rule();
    if (rule == nullptr || !has_right_columns(*rule)) return false;
    action.kind = rule->kind;
    action.source = line_;
    return read_action(action);
  }

  const OpRule* find_rule() {
    std::vector<std::string> names;
    for (const OpRule& rule : op_rules()) {
      if (cells_[op] == name_of(rule.kind)) return &rule;
      names.emplace_back(name_of(rule.kind));
    }
    fail(in_quotes(cells_[op]) + " is not an op." + suggest_name(cells_[op], names));
    return nullptr;
  }

  bool has_right_columns(const OpRule& rule) {
    const std::size_t before = problems_.size();
    for (std::size_t column = id; column < column_count; ++column) {
      const auto is_column = [column](Column c) { return c == column; };
      const bool needed = std::any_of(rule.needs.begin(), rule.needs.end(), is_column);
      const bool taken = needed || std::any_of(rule.takes.begin(), rule.takes.end(), is_column);
      if (needed && cells_[column].empty()) {
        fail(cells_[op] + " needs a value in the column \"" + kColumns[column] + "\".");
      }
      if (!taken && !cells_[column].empty()) {
        fail(cells_[op] + " has no use for " + in_quotes(cells_[column]) + " in the column \"" +
             kColumns[column] + "\".");
      }
    }
    return problems_.size() == before;
  }

  bool read_action(ClientAction& action) {
    if (!cells_[stream].empty() && !read_stream(action.stream)) return false;
    switch (action.kind) {
      case Kind::alloc:
        return read_alloc(action);
      case Kind::free:
        return read_free(action);
      case Kind::record_stream:
        return find_live(action);
      case Kind::sync:
        action.detail = cells_[stream].empty() ? 0 : 1;
        return true;
      case Kind::settings:
        return read_settings(action);
      case Kind::pool_new:
        return read_pool_new(action);
      case Kind::pool_del:
        return read_pool_del(action);
      case Kind::capture_begin:
        return read_capture_begin(action);
      case Kind::capture_end:
        return read_capture_end(action);
      case Kind::mark:
        action.detail = add_text(cells_[text]);
        return true;
      default:
        return true;
    }
  }

  std::uint32_t add_text(std::string value) {
    program_.texts.push_back(std::move(value));
    return static_cast<std::uint32_t>(program_.texts.size() - 1);
  }

  // Handles are printed in both bases.
  bool read_stream(StreamId& value) {
    std::string_view digits = cells_[stream];
    const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
    if (hexadecimal) digits.remove_prefix(2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
    if (error == std::errc{} && end == digits.data() + digits.size()) return true;
    return fail(in_quotes(cells_[stream]) + " is not a stream. Write its number, 0 for the default stream.");
  }

  bool read_alloc(ClientAction& action) {
    const std::optional<Bytes> size = parse_bytes(cells_[bytes]);
    if (!size) {
      return fail(in_quotes(cells_[bytes]) +
                  " is not a size. Write a number of bytes up to 2^60, or 512MiB, 24GiB.");
    }
    const auto live = live_.find(cells_[id]);
    if (live != live_.end()) {
      return fail("id " + in_quotes(cells_[id]) + " is live since line " + std::to_string(live->second.line) +
                  ". Free it first, or use another id.");
    }
    if (!find_pool_of_alloc(action)) return false;
    action.bytes = *size;
    action.block = program_.blocks++;
    live_[cells_[id]] = {action.block, line_};
    return true;
  }

  bool find_pool_of_alloc(ClientAction& action) {
    const auto found = pools_.find(cells_[pool]);
    if (cells_[pool].empty() || (cells_[pool] == "0" && found == pools_.end())) return true;
    if (found == pools_.end() || found->second.deleted) {
      return fail("pool " + in_quotes(cells_[pool]) +
                  (found == pools_.end() ? " was not made. A pool_new before it makes one."
                                         : " is deleted already."));
    }
    if (found->second.graph) return find_capture_of_alloc(action, found->second.number);
    action.pool = found->second.number;
    return true;
  }

  // The capture's stream sends its requests to the pool anyway.
  bool find_capture_of_alloc(ClientAction& action, ProgramPool number) {
    const auto open = std::find_if(captures_.begin(), captures_.end(),
                                   [&](const Capture& capture) { return capture.pool == number; });
    if (open == captures_.end()) {
      return fail("pool " + in_quotes(cells_[pool]) + " belongs to a graph whose capture is over.");
    }
    if (cells_[stream].empty()) action.stream = open->stream;
    if (action.stream == open->stream) return true;
    return fail("pool " + in_quotes(cells_[pool]) + " is captured on stream " + std::to_string(open->stream) +
                ", not on stream " + cells_[stream] + '.');
  }

  bool find_live(ClientAction& action) {
    const auto found = live_.find(cells_[id]);
    if (found == live_.end()) {
      return fail("id " + in_quotes(cells_[id]) + " is not live here: no alloc before it, or freed already.");
    }
    action.block = found->second.block;
    return true;
  }

  bool read_free(ClientAction& action) {
    if (!find_live(action)) return false;
    live_.erase(cells_[id]);
    return true;
  }

  // Sticky keys of earlier strings decide what later ones may say (R9.4).
  bool read_settings(ClientAction& action) {
    try {
      settings_ = parse_allocator_settings(cells_[text], settings_);
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) {
        fail(problem.where.empty() ? problem.what : problem.where + ": " + problem.what);
      }
      return false;
    }
    if (settings_.backend != AllocatorBackend::native) {
      return fail("the backend is chosen when the program starts, not by settings at run time.");
    }
    action.detail = add_text(cells_[text]);
    return true;
  }

  bool read_pool_new(ClientAction& action) {
    const auto known = pools_.find(cells_[pool]);
    if (known != pools_.end() && !known->second.deleted) {
      return fail("pool " + in_quotes(cells_[pool]) + " exists since line " +
                  std::to_string(known->second.line) + ". Delete it first (pool_del), or use another name.");
    }
    const auto kind =
        std::find(kPoolKinds.begin(), kPoolKinds.end(), cells_[text].empty() ? "plain" : cells_[text]);
    if (kind == kPoolKinds.end()) {
      return fail(in_quotes(cells_[text]) + " is not a kind of pool." +
                  suggest_name(cells_[text], {kPoolKinds.begin(), kPoolKinds.end()}));
    }
    action.pool = ++program_.pools;
    action.detail = static_cast<std::uint32_t>(kind - kPoolKinds.begin());
    pools_[cells_[pool]] = {action.pool, false, false, line_};
    return true;
  }

  bool read_pool_del(ClientAction& action) {
    const auto known = pools_.find(cells_[pool]);
    if (known == pools_.end() || known->second.deleted) {
      return fail("there is no pool " + in_quotes(cells_[pool]) + " to delete here.");
    }
    if (std::any_of(captures_.begin(), captures_.end(),
                    [&](const Capture& capture) { return capture.pool == known->second.number; })) {
      return fail("pool " + in_quotes(cells_[pool]) + " is being captured into; end the capture first.");
    }
    known->second.deleted = true;
    action.pool = known->second.number;
    return true;
  }

  bool read_capture_begin(ClientAction& action) {
    const auto busy = std::find_if(captures_.begin(), captures_.end(),
                                   [&](const Capture& capture) { return capture.stream == action.stream; });
    if (busy != captures_.end()) {
      return fail("stream " + std::to_string(action.stream) + " is being captured already.");
    }
    PoolRecord& record = pools_[cells_[pool].empty() ? " " + std::to_string(line_) : cells_[pool]];
    if (record.number == 0 || record.deleted) record = {++program_.pools, true, false, line_};
    action.pool = record.number;
    captures_.push_back({action.stream, action.pool});
    return true;
  }

  bool read_capture_end(ClientAction& action) {
    const auto named = pools_.find(cells_[pool]);
    const auto matches = [&](const Capture& capture) {
      if (!cells_[pool].empty() && (named == pools_.end() || named->second.number != capture.pool))
        return false;
      return cells_[stream].empty() || capture.stream == action.stream;
    };
    const auto open = std::find_if(captures_.rbegin(), captures_.rend(), matches);
    if (open == captures_.rend()) return fail("no such capture is open here.");
    action.pool = open->pool;
    action.stream = open->stream;
    captures_.erase(std::next(open).base());
    return true;
  }

  const std::string& name_;
  std::vector<Problem> problems_;
  std::vector<Column> columns_;
  std::array<std::string, column_count> cells_;
  std::uint32_t line_ = 1;

  ClientProgram program_;
  std::unordered_map<std::string, LiveId> live_;
  std::unordered_map<std::string, PoolRecord> pools_;
  std::vector<Capture> captures_;  ///< open ones, oldest first
  AllocatorSettings settings_;     ///< after the lines read
};

}  // namespace

ClientProgram parse_allocation_script(std::string_view text, const std::string& name,
                                      std::optional<TorchVersion> torch) {
  return ScriptReader(name, torch).read(text);
}

std::vector<ClientProgram> script_programs(InputFile& file, const ReadOptions& options) {
  return {parse_allocation_script(file.rest(), file.name(), options.torch)};
}

}  // namespace vramlab
