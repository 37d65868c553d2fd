// The JSON trace event format, event by event; ui.perfetto.dev and chrome://tracing open it.
#pragma once

#include <string>

#include "sim/core/units.hpp"

namespace vramlab {

/// Where an event is shown: a track of a process.
struct PerfettoTrack {
  int process = 1;
  int thread = 1;
};

/// Gathers events. `args` is a JSON object as text; names may hold anything.
class PerfettoEvents {
 public:
  void add(const char* phase, const std::string& name, PerfettoTrack track, SimTime time,
           const std::string& args, const std::string& more = "");
  void slice(const std::string& name, PerfettoTrack track, SimTime begin, SimTime duration,
             const std::string& args);
  void name_process(PerfettoTrack track, const std::string& name);
  void name_thread(PerfettoTrack track, const std::string& name);

  /// The whole file.
  [[nodiscard]] std::string file() const;

 private:
  std::string text_;
};

}  // namespace vramlab
