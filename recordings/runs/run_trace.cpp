#include "recordings/runs/run_trace.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "recordings/input_file.hpp"
#include "recordings/open.hpp"

namespace vramlab {
namespace {

using Json = nlohmann::ordered_json;

// A parameter is a column that has another one for its change.
template <class Has>
std::vector<std::string> parameters_in(const std::vector<std::string>& columns, const Has& has) {
  std::vector<std::string> names;
  std::copy_if(columns.begin(), columns.end(), std::back_inserter(names),
               [&](const std::string& name) { return has("d_" + name); });
  return names;
}

// What other traces have in common: no iterations.
void require_iterations(const std::string& where, bool has_iterations) {
  if (has_iterations) return;
  throw InputError(where,
                   "is not a trace of a training run. Only those are drawn, as vramlab run --trace or "
                   "compare --trace-dir writes them for a scenario of kind training.");
}

// Up to here a double tells every whole number from the next; no run has more of anything.
constexpr double kMost = 0x1p53;

/// One line, whatever its form: `number(column, whole)` throws where the column is missing or holds no number
/// (or whole number) from 0 to kMost at the most, `flag(column, otherwise)` where it is neither true nor
/// false; a column without `otherwise` must be there.
template <class Number, class Flag>
IterationRecord record_of(const std::vector<std::string>& parameters, const Number& number, const Flag& flag,
                          RecentChoices& choices) {
  const auto whole = [&](const std::string& column) { return std::llround(number(column, true)); };
  const auto bytes = [&](const std::string& column) { return static_cast<Bytes>(number(column, true)); };
  const bool oom = flag("oom", std::nullopt);
  const bool error = flag("error", false);  // older traces lack it and `kept`
  IterationRecord record{.iteration = whole("iteration"),
                         .start = from_seconds(number("start_s", false)),
                         .duration = from_seconds(number("duration_s", false)),
                         .memory = {},
                         .step_peak_allocated = bytes("step_peak_allocated"),
                         .step_peak_reserved = bytes("step_peak_reserved"),
                         .result = oom     ? StepResult::oom
                                   : error ? StepResult::error
                                           : StepResult::ok,
                         .kept = flag("kept", true),
                         .choice = nullptr};
  record.memory.total = bytes("limit");
  record.memory.alloc_retries = static_cast<std::uint64_t>(number("alloc_retries", true));
  StepChoice choice;
  for (const std::string& name : parameters) choice.point.push_back(whole(name));
  record.choice = choices.share(std::move(choice));
  return record;
}

RunTrace read_jsonl(InputFile& file) {
  const std::string text = file.rest();
  RunTrace trace;
  RecentChoices choices;
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string where = file.name() + ": line " + std::to_string(++line);
    const Json row = Json::parse(text.data() + begin, text.data() + end, nullptr, false);
    begin = end + 1;
    if (!row.is_object())
      throw InputError(where,
                       "is not a JSON object. A trace is what vramlab run --trace writes for a scenario of "
                       "kind training.");
    if (line == 1) {
      require_iterations(file.name(), row.contains("iteration"));
      std::vector<std::string> columns;
      for (const auto& [key, value] : row.items()) columns.push_back(key);
      trace.parameters = parameters_in(columns, [&](const std::string& name) { return row.contains(name); });
    }
    const auto number = [&](const std::string& column, bool whole) {
      const auto found = row.find(column);
      const double value = found != row.end() && found->is_number() ? found->get<double>() : -1;
      if (value >= 0 && value <= kMost && (!whole || value == std::floor(value))) return value;
      throw InputError(
          where, "\"" + column + "\" is missing or no " + (whole ? "whole " : "") + "number from 0 to 2^53.");
    };
    const auto flag = [&](const std::string& column, std::optional<bool> otherwise) {
      const auto found = row.find(column);
      if (found == row.end() && otherwise) return *otherwise;
      if (found != row.end() && found->is_boolean()) return found->get<bool>();
      throw InputError(where, "\"" + column + "\" is missing or neither true nor false.");
    };
    trace.iterations.push_back(record_of(trace.parameters, number, flag, choices));
  }
  return trace;
}

RunTrace read_csv(InputFile& file) {
  const CsvTable table{file};
  require_iterations(file.name(), table.has("iteration"));
  RunTrace trace;
  RecentChoices choices;
  trace.parameters = parameters_in(table.columns(), [&](const std::string& name) { return table.has(name); });
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto number = [&](const std::string& column, bool whole) {
      return whole ? static_cast<double>(table.whole(i, column, 0, std::int64_t{1} << 53))
                   : table.number(i, column);
    };
    const auto flag = [&](const std::string& column, std::optional<bool> otherwise) {
      if (otherwise && !table.has(column)) return *otherwise;
      const std::string_view cell = table.text(i, column);
      if (cell != "true" && cell != "false") table.wrong(i, column, "is neither true nor false.");
      return cell == "true";
    };
    trace.iterations.push_back(record_of(trace.parameters, number, flag, choices));
  }
  return trace;
}

}  // namespace

RunTrace read_run_trace(InputFile& file) {
  const FileKind kind = require_kind(file, {FileKind::run_trace, FileKind::run_table});
  RunTrace trace = kind == FileKind::run_table ? read_csv(file) : read_jsonl(file);
  if (trace.iterations.empty()) throw InputError(file.name(), "holds no iterations.");
  return trace;
}

RunTrace read_run_trace(const std::filesystem::path& file) {
  InputFile in(file);
  return read_run_trace(in);
}

}  // namespace vramlab
