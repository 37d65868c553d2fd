// Traces of simulated runs for Perfetto and chrome://tracing (the JSON trace event format).
#include <cstdio>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "recordings/runs/run_trace.hpp"

namespace vramlab {
namespace {

using Json = nlohmann::ordered_json;

// The format counts in microseconds and takes decimals; ours are whole nanoseconds. The JSON library would
// round them through a double, so the number is put in as text.
std::string microseconds(SimTime time) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(time.count() / 1000),
                static_cast<long long>(time.count() % 1000));
  return text;
}

// Names may hold anything.
std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Where an event is shown: a track of a process.
struct Track {
  int process = 1;
  int thread = 1;
};

/// Writes a file of events.
class Events {
 public:
  explicit Events(const TextSink& sink) : writer_(sink) {
    writer_.put("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  }

  void slice(const std::string& name, Track track, SimTime begin, SimTime duration, const Json& args) {
    add("X", name, track, begin, args, R"(,"dur":)" + microseconds(duration));
  }

  void counter(const char* name, Track track, SimTime time, const Json& value) {
    add("C", name, track, time, value);
  }

  // Over all tracks of the process.
  void mark(const std::string& name, Track track, SimTime time, const Json& args) {
    add("i", name, track, time, args, R"(,"s":"p")");
  }

  void name_process(Track track, const std::string& name) {
    add("M", "process_name", track, SimTime{0}, {{"name", name}});
  }

  void name_thread(Track track, const std::string& name) {
    add("M", "thread_name", track, SimTime{0}, {{"name", name}});
  }

  /// Ends the file.
  void finish() {
    writer_.put("\n]}\n");
    writer_.flush();
  }

 private:
  void add(const char* phase, const std::string& name, Track track, SimTime time, const Json& args,
           const std::string& more = "") {
    if (!std::exchange(is_first_, false)) writer_.put(",\n");
    writer_.put(R"({"ph":")" + std::string{phase} + R"(","name":)" + dumped(name) + R"(,"pid":)" +
                std::to_string(track.process) + R"(,"tid":)" + std::to_string(track.thread) + R"(,"ts":)" +
                microseconds(time) + more + R"(,"args":)" + dumped(args) + "}");
  }

  PieceWriter writer_;
  bool is_first_ = true;
};

constexpr Track kSteps{1, 1};

Json arguments_of(const ParameterSpace& space, const IterationRecord& record) {
  Json args;
  args["iteration"] = record.iteration;
  for (std::size_t i = 0; i < space.size(); ++i) args[space.parameters[i].name] = record.point()[i];
  args["step_peak_allocated"] = record.step_peak_allocated;
  args["step_peak_reserved"] = record.step_peak_reserved;
  args["limit"] = record.memory.total;
  args["alloc_retries"] = record.memory.alloc_retries;
  if (!record.kept) args["kept"] = false;
  if (!record.reason().empty()) args["reason"] = record.reason();
  return args;
}

void add_memory(Events& events, SimTime time, Bytes allocated, Bytes reserved) {
  events.counter("allocated", kSteps, time, {{"bytes", allocated}});
  events.counter("active", kSteps, time, {{"bytes", allocated}});
  events.counter("reserved", kSteps, time, {{"bytes", reserved}});
}

void add_change(Events& events, const ParameterSpace& space, const IterationRecord& record, SimTime time) {
  std::string name;
  for (std::size_t i = 0; i < record.delta().size(); ++i) {
    if (record.delta()[i] == 0) continue;
    name += (name.empty() ? "" : ", ") + space.parameters[i].name + (record.delta()[i] > 0 ? " +" : " ") +
            std::to_string(record.delta()[i]);
  }
  if (!name.empty()) events.mark(name, kSteps, time, {{"reason", record.reason()}});
}

Track card_track(CardId card, int thread = 1) { return {static_cast<int>(card) + 2, thread}; }

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

void write_trace_perfetto(const std::string& title, const ParameterSpace& space,
                          const std::vector<IterationRecord>& records, const TextSink& sink) {
  Events events{sink};
  events.name_process(kSteps, title);
  events.name_thread(kSteps, "steps");
  for (const IterationRecord& record : records) {
    const SimTime end = record.start + record.duration;
    const bool oom = record.result == StepResult::oom;
    const bool error = record.result == StepResult::error;
    events.slice(oom     ? "step (OOM)"
                 : error ? "step (error)"
                         : "step",
                 kSteps, record.start, record.duration, arguments_of(space, record));
    add_memory(events, record.start, record.step_peak_allocated, record.step_peak_reserved);
    add_memory(events, end, record.memory.allocated, record.memory.reserved);
    if (oom) events.mark("OOM", kSteps, end, {{"iteration", record.iteration}});
    add_change(events, space, record, end);
  }
  events.finish();
}

void write_queue_perfetto(const std::string& title, const std::vector<JobSpec>& jobs, const JobQueueRun& run,
                          const TextSink& sink) {
  Events events{sink};
  const Track queue{1, 1};
  events.name_process(queue, title);
  for (const QueueMoment& moment : run.monitored) {
    events.counter("active jobs", queue, moment.time, {{"jobs", moment.active}});
    events.counter("pending jobs", queue, moment.time, {{"jobs", moment.pending}});
  }
  std::map<CardId, Lanes> lanes;
  for (const CardMoment& moment : run.moments) {
    const Track track = card_track(moment.card);
    if (lanes.try_emplace(moment.card).second) {
      events.name_process(track, "card " + std::to_string(moment.card));
    }
    events.counter("used", track, moment.time, {{"bytes", moment.used}});
    events.counter("foreign", track, moment.time, {{"bytes", moment.foreign}});
    events.counter("promised", track, moment.time, {{"bytes", moment.promised}});
  }
  for (const JobStay& stay : run.stays) {
    const Json args{{"need", stay.need}, {"most_used", stay.most_used}};
    const std::string name = jobs[stay.job].name + (stay.ran_out ? " (OOM)" : "");
    for (const CardId card : stay.cards) {
      events.slice(name, card_track(card, lanes[card].take(stay)), stay.from, stay.to - stay.from, args);
    }
  }
  events.finish();
}

}  // namespace vramlab
