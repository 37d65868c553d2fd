#include "lab/whatif_json.hpp"

#include "lab/whatif_verdict.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json first_oom_json(const ClientProgram& program, const WhatIfRow& row) {
  if (!row.outcome.first_oom) return nullptr;
  const FailedRequest& failed = *row.outcome.first_oom;
  const ClientAction& action = program.actions[failed.action];
  Json json{{"operation", failed.action + 1},
            {"source", action.source},
            {"mark", mark_after(program, failed.action)},
            {"requested_bytes", failed.oom.requested},
            {"tried_bytes", failed.oom.segment},
            {"device_free_bytes", failed.oom.device_free},
            {"allocated_bytes", failed.oom.allocated},
            {"reserved_bytes", failed.oom.reserved},
            {"stream", action.stream}};
  json["message"] = oom_message(failed.oom);
  json["details"] = oom_details(failed.oom);
  return json;
}

double fragmentation(const ProgramOutcome& outcome) {
  if (outcome.reserved_at_peak == 0) return 0;
  return 1.0 - static_cast<double>(outcome.active_at_peak) / static_cast<double>(outcome.reserved_at_peak);
}

Json shares_json(const std::vector<PeakShare>& shares, const char* key) {
  Json list = Json::array();
  for (const PeakShare& share : shares) {
    Json json;
    if (std::string_view{key} == "frames") {
      json["frames"] = Json::array({share.name});
      for (const std::string& caller : share.callers) json["frames"].push_back(caller);
    } else {
      json[key] = share.name;
    }
    json["bytes"] = share.bytes;
    json["blocks"] = share.blocks;
    list.push_back(std::move(json));
  }
  return list;
}

void add_peak(Json& json, const PeakMemory& peak) {
  json["peak"] =
      peak.by_frame.empty() ? shares_json(peak.by_size, "size_class") : shares_json(peak.by_frame, "frames");
  json["peak_by_size_class"] = shares_json(peak.by_size, "size_class");
  json["peak_by_stream"] = shares_json(peak.by_stream, "stream");
  json["peak_total"] = {{"bytes", peak.bytes},
                        {"blocks", peak.blocks},
                        {"requested_bytes", peak.requested},
                        {"rounding_bytes", peak.bytes - peak.requested},
                        {"mark", peak.mark}};
}

Json rows_json(const std::vector<ClientProgram>& programs, const std::vector<WhatIfRow>& rows) {
  Json list = Json::array();
  for (const WhatIfRow& row : rows) list.push_back(whatif_row_json(programs[row.program], row));
  return list;
}

}  // namespace

Json whatif_mark_json(const MarkFigures& mark) {
  const MemoryStats& stats = mark.stats;
  return {{"text", mark.text},
          {"allocated_bytes", stats.allocated_bytes.all().current},
          {"reserved_bytes", stats.reserved_bytes.all().current},
          {"requested_bytes", stats.requested_bytes.all().current},
          {"active_bytes", stats.active_bytes.all().current},
          {"retries", stats.num_alloc_retries},
          {"ooms", stats.num_ooms},
          {"segments", stats.segment.all().current},
          {"peak_allocated_bytes", stats.allocated_bytes.all().peak},
          {"peak_reserved_bytes", stats.reserved_bytes.all().peak},
          {"peak_requested_bytes", stats.requested_bytes.all().peak},
          {"inactive_split_bytes", stats.inactive_split_bytes.all().current},
          {"device_allocs", stats.num_device_alloc},
          {"device_frees", stats.num_device_free}};
}

Json whatif_row_json(const ClientProgram& program, const WhatIfRow& row) {
  const ProgramOutcome& outcome = row.outcome;
  const MemoryStats& stats = outcome.stats;
  Json json{{"alloc_conf", row.conf},
            {"gpu", row.card.gpu},
            {"card", row.card.name},
            {"capacity_bytes", or_null(row.card.capacity)},
            {"context_bytes", row.card.context},
            {"context_assumed", row.card.context_assumed},
            {"limit_bytes", or_null(row.limit)},
            {"usable_bytes", row.usable},
            {"fits", outcome.fits()},
            {"ooms", outcome.ooms},
            {"allocator_ooms", stats.num_ooms},
            {"retries", stats.num_alloc_retries},
            {"unreplayed_attempts", program.attempts},
            {"attempts_that_would_succeed", outcome.attempts_served},
            {"peak_allocated_bytes", stats.allocated_bytes.all().peak},
            {"peak_reserved_bytes", stats.reserved_bytes.all().peak},
            {"peak_requested_bytes", stats.requested_bytes.all().peak},
            {"highest_allocated_bytes", outcome.highest_allocated},
            {"highest_reserved_bytes", outcome.highest_reserved},
            {"end_allocated_bytes", stats.allocated_bytes.all().current},
            {"end_reserved_bytes", stats.reserved_bytes.all().current},
            {"segments", stats.segment.all().current},
            {"device_allocs", stats.num_device_alloc},
            {"device_frees", stats.num_device_free},
            {"driver_time_s", to_seconds(outcome.driver_time)},
            {"fragmentation", fragmentation(outcome)},
            {"smallest_usable_bytes", or_null(row.smallest)},
            {"smallest_without_retry_bytes", or_null(row.smallest_without_retry)}};
  json["marks"] = Json::array();
  for (const MarkFigures& mark : outcome.marks) json["marks"].push_back(whatif_mark_json(mark));
  json["first_oom"] = first_oom_json(program, row);
  json["fault"] = or_null(outcome.fault);
  json["file"] = program.file;
  json["device"] = program.device;
  return json;
}

Json whatif_json(const std::vector<ClientProgram>& programs, const WhatIfAnswer& answer,
                 const std::vector<PeakMemory>& peaks) {
  Json json;
  json["file"] = programs.front().file;
  json["verdict"] = whatif_verdict(programs, answer);
  json["notes"] = whatif_notes(programs, answer);
  json["rows"] = rows_json(programs, answer.rows);
  add_peak(json, peaks.front());
  if (programs.size() == 1) return json;
  json["ranks"] = Json::array();
  for (std::size_t i = 0; i < programs.size(); ++i) {
    Json rank;
    rank["file"] = programs[i].file;
    rank["device"] = programs[i].device;
    rank["rows"] = rows_json(programs, answer.ranks[i]);
    add_peak(rank, peaks[i]);
    json["ranks"].push_back(std::move(rank));
  }
  return json;
}

}  // namespace vramlab
