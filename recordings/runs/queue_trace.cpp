#include <map>

#include <nlohmann/json.hpp>

#include "core/csv.hpp"
#include "recordings/runs/perfetto.hpp"
#include "recordings/runs/run_trace.hpp"

namespace vramlab {
namespace {

using Json = nlohmann::ordered_json;

Json card_row(const CardMoment& moment) {
  return {{"time_s", to_seconds(moment.time)},
          {"card", moment.card},
          {"used", moment.used},
          {"foreign", moment.foreign},
          {"promised", moment.promised},
          {"jobs", moment.jobs},
          {"alert", moment.alert}};
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

std::string cells(const Json& row) {
  std::string line;
  for (const auto& [key, value] : row.items()) {
    line += (line.empty() ? "" : ",") + csv_cell(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return line + '\n';
}

std::string header(const Json& row) {
  std::string line;
  for (const auto& [key, value] : row.items()) line += (line.empty() ? "" : ",") + key;
  return line + '\n';
}

PerfettoTrack card_track(CardId card, int thread = 1) { return {static_cast<int>(card) + 2, thread}; }

/// Tracks of one card: a slice goes into the lowest that is free when it begins.
class Lanes {
 public:
  int take(const JobStay& stay) {
    std::size_t lane = 0;
    while (lane < ends_.size() && ends_[lane] > stay.from) ++lane;
    if (lane == ends_.size()) ends_.push_back({});
    ends_[lane] = stay.to;
    return static_cast<int>(lane) + 1;
  }

 private:
  std::vector<SimTime> ends_;
};

}  // namespace

std::string cards_jsonl(const JobQueueRun& run) {
  std::string text;
  for (const CardMoment& moment : run.moments) text += card_row(moment).dump() + '\n';
  return text;
}

std::string cards_csv(const JobQueueRun& run) {
  std::string text = header(card_row({}));
  for (const CardMoment& moment : run.moments) text += cells(card_row(moment));
  return text;
}

std::string stays_csv(const std::vector<JobSpec>& jobs, const JobQueueRun& run) {
  std::string text = header(stay_row({}, {}));
  for (const JobStay& stay : run.stays) text += cells(stay_row(jobs, stay));
  return text;
}

std::string monitor_csv(const JobQueueRun& run) {
  std::string text = header(monitor_row({}, {}));
  for (const QueueMoment& moment : run.monitored) text += cells(monitor_row(run, moment));
  return text;
}

std::string queue_perfetto(const std::string& title, const std::vector<JobSpec>& jobs,
                           const JobQueueRun& run) {
  PerfettoEvents events;
  const PerfettoTrack queue{1, 1};
  events.name_process(queue, title);
  for (const QueueMoment& moment : run.monitored) {
    events.add("C", "active jobs", queue, moment.time, Json{{"jobs", moment.active}}.dump());
    events.add("C", "pending jobs", queue, moment.time, Json{{"jobs", moment.pending}}.dump());
  }
  std::map<CardId, Lanes> lanes;
  for (const CardMoment& moment : run.moments) {
    const PerfettoTrack track = card_track(moment.card);
    if (lanes.try_emplace(moment.card).second) {
      events.name_process(track, "card " + std::to_string(moment.card));
    }
    events.add("C", "used", track, moment.time, Json{{"bytes", moment.used}}.dump());
    events.add("C", "foreign", track, moment.time, Json{{"bytes", moment.foreign}}.dump());
    events.add("C", "promised", track, moment.time, Json{{"bytes", moment.promised}}.dump());
  }
  for (const JobStay& stay : run.stays) {
    const Json args{{"need", stay.need}, {"most_used", stay.most_used}};
    const std::string name = jobs[stay.job].name + (stay.ran_out ? " (OOM)" : "");
    for (const CardId card : stay.cards) {
      events.slice(name, card_track(card, lanes[card].take(stay)), stay.from, stay.to - stay.from,
                   args.dump());
    }
  }
  return events.file();
}

}  // namespace vramlab
