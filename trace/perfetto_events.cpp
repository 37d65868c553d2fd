#include "trace/perfetto_events.hpp"

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

}  // namespace vramlab
