#include "trace/run_trace.hpp"

#include <nlohmann/json.hpp>

#include "sim/core/csv.hpp"

namespace vramlab {
namespace {

using Json = nlohmann::ordered_json;

Json memory_figures(const IterationRecord& record) {
  return {{"allocated", record.memory.allocated},
          {"peak_allocated", record.memory.peak_allocated},
          {"reserved", record.memory.reserved},
          {"peak_reserved", record.memory.peak_reserved},
          {"step_peak_allocated", record.step_peak_allocated},
          {"step_peak_reserved", record.step_peak_reserved},
          {"limit", record.memory.total},
          {"alloc_retries", record.memory.alloc_retries},
          {"allocator_ooms", record.memory.allocator_ooms}};
}

Json trace_row(const ParameterSpace& space, const IterationRecord& record) {
  Json row;
  row["iteration"] = record.iteration;
  row["start_s"] = to_seconds(record.start);
  row["duration_s"] = to_seconds(record.duration);
  for (std::size_t i = 0; i < space.size(); ++i) row[space.parameters[i].name] = record.point[i];
  row["oom"] = record.result == StepResult::oom;
  row["error"] = record.result == StepResult::error;
  row["kept"] = record.kept;
  row.update(memory_figures(record));
  for (std::size_t i = 0; i < space.size(); ++i) {
    row["d_" + space.parameters[i].name] = record.delta.empty() ? 0 : record.delta[i];
  }
  row["reason"] = record.reason;
  return row;
}

}  // namespace

std::string trace_jsonl(const ParameterSpace& space, const std::vector<IterationRecord>& records) {
  std::string text;
  for (const IterationRecord& record : records) text += trace_row(space, record).dump() + '\n';
  return text;
}

std::string trace_csv(const ParameterSpace& space, const std::vector<IterationRecord>& records) {
  std::string text;
  const auto add_line = [&](const Json& row, const auto& cell) {
    std::string line;
    for (const auto& [key, value] : row.items()) line += (line.empty() ? "" : ",") + cell(key, value);
    text += line + '\n';
  };
  IterationRecord blank;
  blank.point.resize(space.size());
  add_line(trace_row(space, blank), [](const std::string& key, const Json&) { return key; });
  for (const IterationRecord& record : records) {
    add_line(trace_row(space, record), [](const std::string&, const Json& value) {
      return csv_cell(value.is_string() ? value.get<std::string>() : value.dump());
    });
  }
  return text;
}

}  // namespace vramlab
