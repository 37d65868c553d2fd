// Traces of simulated runs for Perfetto and chrome://tracing.
#pragma once

#include <string>
#include <vector>

#include "core/run_record.hpp"
#include "core/units.hpp"

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

// A run as a trace that ui.perfetto.dev and chrome://tracing open (the JSON trace event format).

/// One slice a step with its parameters; a counter track each for allocated, active and reserved bytes; a
/// mark for each step that ran out of memory and for each change of parameters. While a step lasts the
/// counters show its peaks, from its end on what it left. Active equals allocated: nothing in a simulated
/// step is used by a second stream (R8.7). Times are simulated.
std::string trace_perfetto(const std::string& title, const ParameterSpace& space,
                           const std::vector<IterationRecord>& records);

}  // namespace vramlab
