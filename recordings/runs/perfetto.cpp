#include "recordings/runs/perfetto.hpp"

#include <cstdio>

#include <nlohmann/json.hpp>

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

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void PerfettoEvents::add(const char* phase, const std::string& name, PerfettoTrack track, SimTime time,
                         const std::string& args, const std::string& more) {
  text_ += text_.empty() ? "" : ",\n";
  text_ += R"({"ph":")" + std::string{phase} + R"(","name":)" + quoted(name) + R"(,"pid":)" +
           std::to_string(track.process) + R"(,"tid":)" + std::to_string(track.thread) + R"(,"ts":)" +
           microseconds(time) + more + R"(,"args":)" + args + "}";
}

void PerfettoEvents::slice(const std::string& name, PerfettoTrack track, SimTime begin, SimTime duration,
                           const std::string& args) {
  add("X", name, track, begin, args, R"(,"dur":)" + microseconds(duration));
}

void PerfettoEvents::name_process(PerfettoTrack track, const std::string& name) {
  add("M", "process_name", track, SimTime{0}, R"({"name":)" + quoted(name) + "}");
}

void PerfettoEvents::name_thread(PerfettoTrack track, const std::string& name) {
  add("M", "thread_name", track, SimTime{0}, R"({"name":)" + quoted(name) + "}");
}

std::string PerfettoEvents::file() const {
  return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + text_ + "\n]}\n";
}

namespace {

using Json = nlohmann::ordered_json;

constexpr PerfettoTrack kSteps{1, 1};

// The run's counters and marks.
class Events : public PerfettoEvents {
 public:
  void counter(const char* name, SimTime time, Bytes bytes) {
    add("C", name, kSteps, time, Json{{"bytes", bytes}}.dump());
  }
  // Over all tracks of the process.
  void mark(const std::string& name, SimTime time, const Json& args) {
    add("i", name, kSteps, time, dumped(args), R"(,"s":"p")");
  }
  static std::string dumped(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
};

Json arguments_of(const ParameterSpace& space, const IterationRecord& record) {
  Json args;
  args["iteration"] = record.iteration;
  for (std::size_t i = 0; i < space.size(); ++i) args[space.parameters[i].name] = record.point[i];
  args["step_peak_allocated"] = record.step_peak_allocated;
  args["step_peak_reserved"] = record.step_peak_reserved;
  args["limit"] = record.memory.total;
  args["alloc_retries"] = record.memory.alloc_retries;
  if (!record.kept) args["kept"] = false;
  if (!record.reason.empty()) args["reason"] = record.reason;
  return args;
}

void add_memory(Events& events, SimTime time, Bytes allocated, Bytes reserved) {
  events.counter("allocated", time, allocated);
  events.counter("active", time, allocated);
  events.counter("reserved", time, reserved);
}

void add_change(Events& events, const ParameterSpace& space, const IterationRecord& record, SimTime time) {
  std::string name;
  for (std::size_t i = 0; i < record.delta.size(); ++i) {
    if (record.delta[i] == 0) continue;
    name += (name.empty() ? "" : ", ") + space.parameters[i].name + (record.delta[i] > 0 ? " +" : " ") +
            std::to_string(record.delta[i]);
  }
  if (!name.empty()) events.mark(name, time, {{"reason", record.reason}});
}

}  // namespace

std::string trace_perfetto(const std::string& title, const ParameterSpace& space,
                           const std::vector<IterationRecord>& records) {
  Events events;
  events.name_process(kSteps, title);
  events.name_thread(kSteps, "steps");
  for (const IterationRecord& record : records) {
    const SimTime end = record.start + record.duration;
    const bool oom = record.result == StepResult::oom;
    const bool error = record.result == StepResult::error;
    events.slice(oom     ? "step (OOM)"
                 : error ? "step (error)"
                         : "step",
                 kSteps, record.start, record.duration, Events::dumped(arguments_of(space, record)));
    add_memory(events, record.start, record.step_peak_allocated, record.step_peak_reserved);
    add_memory(events, end, record.memory.allocated, record.memory.reserved);
    if (oom) events.mark("OOM", end, {{"iteration", record.iteration}});
    add_change(events, space, record, end);
  }
  return events.file();
}

}  // namespace vramlab
