#include "recordings/logs/oracle_log.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "recordings/exact_json.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

using nlohmann::json;

constexpr Bytes kMostBytes = Bytes{1} << 60;  // rounded up and added, it still fits 64 bits

constexpr std::array kKinds{"init",          "alloc",          "alloc_t",         "oom",        "free",
                            "free_deferred", "empty_cache",    "reset_peak",      "pool_alloc", "graph_alloc",
                            "alloc_oom",     "pool_alloc_oom", "graph_alloc_oom", "pool_new",   "pool_del",
                            "settings",      "capture_begin",  "capture_end",     "graph_del",  "stopped"};

class LogReader {
 public:
  LogReader(const json& root, const std::string& name) : root_(root), name_(name) {}

  OracleLog read() const {
    OracleLog log;
    log.torch = field<std::string>("/torch");
    log.device = field<std::string>("/device");
    log.total_memory = field<Bytes>("/total_memory");
    if (log.total_memory > kMostBytes) fail("/total_memory", "is above 2^60 bytes.");
    log.fraction = field<double>("/fraction");
    if (!(log.fraction >= 0)) fail("/fraction", "is negative.");
    log.conf = field<std::string>("/conf");
    log.keys = field<std::vector<std::string>>("/keys");
    if (root_.contains("streams")) log.streams = field<std::vector<StreamId>>("/streams");
    const json& operations = at("/ops");
    if (!operations.is_array()) fail("/ops", "is not a list");
    for (std::size_t i = 0; i < operations.size(); ++i) {
      log.operations.push_back(operation(operations[i], i, log));
    }
    return log;
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& what) const {
    throw InputError(name_ + ": " + pointer, what);
  }

  const json& at(const std::string& pointer) const {
    const json::json_pointer place(pointer);
    if (!root_.contains(place)) fail(pointer, "is missing. This is not an oracle log.");
    return root_.at(place);
  }

  template <class Value>
  Value exact_at(const json& value, const std::string& pointer) const {
    try {
      return exact<Value>(value);
    } catch (const InputError& error) {
      fail(pointer, error.problems().front().what);
    }
  }

  template <class Value>
  Value field(const std::string& pointer) const {
    return exact_at<Value>(at(pointer), pointer);
  }

  // One of the fields of an operation; `fields` was checked to have it.
  template <class Value>
  Value operation_field(const json& fields, std::size_t operation, std::size_t field) const {
    return exact_at<Value>(fields[field], place(operation, field));
  }

  static std::string place(std::size_t operation, std::size_t field) {
    return "/ops/" + std::to_string(operation) + '/' + std::to_string(field);
  }

  OracleOperation operation(const json& fields, std::size_t index, const OracleLog& log) const {
    if (!fields.is_array() || fields.size() < 5) {
      fail("/ops/" + std::to_string(index), "is not [kind, bytes, stream, pointer, counters].");
    }
    OracleOperation op;
    op.kind = operation_field<std::string>(fields, index, 0);
    if (std::find(kKinds.begin(), kKinds.end(), op.kind) == kKinds.end()) {
      fail(place(index, 0), "\"" + op.kind + "\" is not a kind of operation." +
                                suggest_name(op.kind, {kKinds.begin(), kKinds.end()}));
    }
    op.bytes = operation_field<Bytes>(fields, index, 1);
    if (op.bytes > kMostBytes) fail(place(index, 1), "is above 2^60 bytes.");
    op.tag = operation_field<std::int64_t>(fields, index, 2);
    if (fields[3].is_string()) {
      op.argument = fields[3].get<std::string>();
    } else {
      op.pointer = operation_field<std::uint64_t>(fields, index, 3);
    }
    op.counters = operation_field<std::vector<std::int64_t>>(fields, index, 4);
    if (fields.size() > 5) op.text = operation_field<std::string>(fields, index, 5);
    if (op.kind != "stopped" && op.counters.size() != log.keys.size()) {
      fail(place(index, 4), "has " + std::to_string(op.counters.size()) + " values for " +
                                std::to_string(log.keys.size()) + " keys.");
    }
    return op;
  }

  const json& root_;
  const std::string& name_;
};

}  // namespace

std::optional<Bytes> OracleLog::limit() const {
  if (fraction >= 1) return std::nullopt;
  return static_cast<Bytes>(fraction * static_cast<double>(total_memory));
}

std::optional<std::size_t> OracleLog::reserved_column() const {
  const auto key = std::find(keys.begin(), keys.end(), "reserved_bytes.all.current");
  if (key == keys.end()) return std::nullopt;
  return static_cast<std::size_t>(key - keys.begin());
}

OracleLog parse_oracle_log(std::string_view text, const std::string& name) {
  try {
    const json root = json::parse(text);
    return LogReader(root, name).read();
  } catch (const json::parse_error& error) {
    throw InputError(name + ": byte " + std::to_string(error.byte), "not valid JSON");
  }
}

OracleLog read_oracle_log(const std::filesystem::path& file) {
  return parse_oracle_log(read_input_file(file), file.string());
}

}  // namespace vramlab
