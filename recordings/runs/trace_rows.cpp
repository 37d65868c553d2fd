// Traces as rows: one JSON object a line, or CSV with a header.
#include <array>

#include <nlohmann/json.hpp>

#include "core/csv.hpp"
#include "recordings/runs/run_trace.hpp"

namespace vramlab {
namespace {

using Json = nlohmann::ordered_json;

Json trace_row(const ParameterSpace& space, const IterationRecord& record) {
  Json row;
  row["iteration"] = record.iteration;
  row["start_s"] = to_seconds(record.start);
  row["duration_s"] = to_seconds(record.duration);
  for (std::size_t i = 0; i < space.size(); ++i) row[space.parameters[i].name] = record.point()[i];
  row["oom"] = record.result == StepResult::oom;
  row["error"] = record.result == StepResult::error;
  row["kept"] = record.kept;
  row["allocated"] = record.memory.allocated;
  row["peak_allocated"] = record.memory.peak_allocated;
  row["reserved"] = record.memory.reserved;
  row["peak_reserved"] = record.memory.peak_reserved;
  row["step_peak_allocated"] = record.step_peak_allocated;
  row["step_peak_reserved"] = record.step_peak_reserved;
  row["limit"] = record.memory.total;
  row["alloc_retries"] = record.memory.alloc_retries;
  row["allocator_ooms"] = record.memory.allocator_ooms;
  for (std::size_t i = 0; i < space.size(); ++i) {
    row["d_" + space.parameters[i].name] = record.delta().empty() ? 0 : record.delta()[i];
  }
  row["reason"] = record.reason();
  return row;
}

const char* status_name(CardStatus status) {
  constexpr std::array kNames{"AVAILABLE", "BUSY", "OUT_OF_MEMORY"};  // as the published queue has them
  return kNames[static_cast<std::size_t>(status)];
}

Json card_row(const CardMoment& moment) {
  return {{"time_s", to_seconds(moment.time)},
          {"card", moment.card},
          {"used", moment.used},
          {"foreign", moment.foreign},
          {"promised", moment.promised},
          {"jobs", moment.jobs},
          {"alert", moment.alert},
          {"status", status_name(moment.status)}};
}

Json monitor_row(const JobQueueRun& run, const QueueMoment& moment) {
  const Bytes used = moment.used + moment.foreign;
  return {
      {"time_s", to_seconds(moment.time)},
      {"total_memory", run.capacity},
      {"used_memory", used},
      {"free_memory", run.capacity - used},
      {"utilization", run.capacity > 0 ? static_cast<double>(used) / static_cast<double>(run.capacity) : 0},
      {"active_jobs", moment.active},
      {"pending_jobs", moment.pending},
      {"total_allocated", moment.promised},
      {"pending_requirements", moment.pending_bytes},
      {"cards_over_90", moment.cards_alerted}};
}

Json stay_row(const std::vector<JobSpec>& jobs, const JobStay& stay) {
  std::string cards;
  for (const CardId card : stay.cards) cards += (cards.empty() ? "" : " ") + std::to_string(card);
  return {{"name", jobs.empty() ? "" : jobs[stay.job].name},
          {"cards", cards},
          {"from_s", to_seconds(stay.from)},
          {"to_s", to_seconds(stay.to)},
          {"need", stay.need},
          {"most_used", stay.most_used},
          {"oom", stay.ran_out}};
}

template <class Items, class RowOf>
void put_jsonl(const Items& items, const RowOf& row_of, const TextSink& sink) {
  PieceWriter writer{sink};
  for (const auto& item : items)
    writer.put(row_of(item).dump(-1, ' ', false, Json::error_handler_t::replace) + '\n');
  writer.flush();
}

std::string csv_line(const Json& row) {
  std::string line;
  for (const auto& [column, value] : row.items()) {
    line += (line.empty() ? "" : ",") + csv_cell(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return line + '\n';
}

// `blank` has the columns.
template <class Items, class RowOf>
void put_csv(const Json& blank, const Items& items, const RowOf& row_of, const TextSink& sink) {
  PieceWriter writer{sink};
  std::string header;
  for (const auto& [column, value] : blank.items()) header += (header.empty() ? "" : ",") + column;
  writer.put(header + '\n');
  for (const auto& item : items) writer.put(csv_line(row_of(item)));
  writer.flush();
}

}  // namespace

void write_trace_jsonl(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                       const TextSink& sink) {
  put_jsonl(
      records, [&](const IterationRecord& record) { return trace_row(space, record); }, sink);
}

void write_trace_csv(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                     const TextSink& sink) {
  const IterationRecord blank{.choice =
                                  std::make_shared<StepChoice>(StepChoice{.point = Point(space.size())})};
  put_csv(
      trace_row(space, blank), records,
      [&](const IterationRecord& record) { return trace_row(space, record); }, sink);
}

void write_cards_jsonl(const JobQueueRun& run, const TextSink& sink) {
  put_jsonl(run.moments, card_row, sink);
}

void write_cards_csv(const JobQueueRun& run, const TextSink& sink) {
  put_csv(card_row({}), run.moments, card_row, sink);
}

void write_stays_csv(const std::vector<JobSpec>& jobs, const JobQueueRun& run, const TextSink& sink) {
  put_csv(
      stay_row({}, {}), run.stays, [&](const JobStay& stay) { return stay_row(jobs, stay); }, sink);
}

void write_monitor_csv(const JobQueueRun& run, const TextSink& sink) {
  put_csv(
      monitor_row({}, {}), run.monitored, [&](const QueueMoment& moment) { return monitor_row(run, moment); },
      sink);
}

}  // namespace vramlab
