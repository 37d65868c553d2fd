#include "trace/perfetto_writer.hpp"

#include <cstdio>

#include <nlohmann/json.hpp>

namespace vramlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProcess = 1;
constexpr int kSteps = 1;

// The format counts in microseconds and takes decimals; ours are whole nanoseconds. The JSON library would
// round them through a double, so the number is put in as text.
std::string microseconds(SimTime time) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(time.count() / 1000),
                static_cast<long long>(time.count() % 1000));
  return text;
}

class Events {
 public:
  void add(const char* phase, const std::string& name, SimTime time, const Json& args,
           const std::string& more = "") {
    text_ += text_.empty() ? "" : ",\n";
    text_ += R"({"ph":")" + std::string{phase} + R"(","name":)" + quoted(name) + R"(,"pid":)" +
             std::to_string(kProcess) + R"(,"tid":)" + std::to_string(kSteps) + R"(,"ts":)" +
             microseconds(time) + more + R"(,"args":)" + dumped(args) + "}";
  }
  void counter(const char* name, SimTime time, Bytes bytes) { add("C", name, time, {{"bytes", bytes}}); }
  void mark(const std::string& name, SimTime time, const Json& args) {
    add("i", name, time, args, R"(,"s":"p")");  // over all tracks of the process
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  static std::string dumped(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  static std::string quoted(const std::string& text) { return dumped(Json(text)); }

  std::string text_;
};

Json arguments_of(const ParameterSpace& space, const IterationRecord& record) {
  Json args;
  args["iteration"] = record.iteration;
  for (std::size_t i = 0; i < space.size(); ++i) args[space.parameters[i].name] = record.point[i];
  args["step_peak_allocated"] = record.step_peak_allocated;
  args["step_peak_reserved"] = record.step_peak_reserved;
  args["limit"] = record.memory.total;
  args["alloc_retries"] = record.memory.alloc_retries;
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
  events.add("M", "process_name", SimTime{0}, {{"name", title}});
  events.add("M", "thread_name", SimTime{0}, {{"name", "steps"}});
  for (const IterationRecord& record : records) {
    const SimTime end = record.start + record.duration;
    const bool oom = record.result == StepResult::oom;
    events.add("X", oom ? "step (OOM)" : "step", record.start, arguments_of(space, record),
               R"(,"dur":)" + microseconds(record.duration));
    add_memory(events, record.start, record.step_peak_allocated, record.step_peak_reserved);
    add_memory(events, end, record.memory.allocated, record.memory.reserved);
    if (oom) events.mark("OOM", end, {{"iteration", record.iteration}});
    add_change(events, space, record, end);
  }
  return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + events.take() + "\n]}\n";
}

}  // namespace vramlab
