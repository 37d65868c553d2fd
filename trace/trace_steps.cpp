#include "trace/trace_steps.hpp"

namespace vramlab {
namespace {

using Action = TraceEntry::Action;
using Kind = TraceStep::Kind;

// `free_completed` right after its request: nothing was deferred, or it makes no difference (R3.8).
bool completes(std::span<const TraceEntry> trace, std::size_t request) {
  return request + 1 < trace.size() && trace[request + 1].action == Action::free_completed &&
         trace[request + 1].address == trace[request].address;
}

}  // namespace

std::vector<TraceStep> cut_into_steps(std::span<const TraceEntry> trace, std::span<const std::size_t> cuts) {
  std::vector<TraceStep> steps;
  TraceStep open;
  const auto close = [&](Kind kind, std::size_t action, std::size_t end) {
    open.kind = kind;
    open.action = action;
    open.end = end;
    steps.push_back(open);
    open.first = end;
  };
  std::size_t i = 0;
  while (i < trace.size()) {
    while (!cuts.empty() && cuts.front() <= i) {
      if (open.first < i) close(Kind::none, i, i);
      cuts = cuts.subspan(1);
    }
    const std::size_t entry = i;
    const bool completed = trace[entry].action == Action::free_requested && completes(trace, entry);
    i += completed ? 2 : 1;
    switch (trace[entry].action) {
      case Action::alloc:
        close(Kind::allocation, entry, i);
        break;
      case Action::oom:
        close(Kind::failure, entry, i);
        break;
      case Action::free_requested:
        close(completed ? Kind::free : Kind::deferred_free, entry, i);
        break;
      default:
        break;
    }
  }
  if (open.first < trace.size()) close(Kind::none, trace.size(), trace.size());
  return steps;
}

}  // namespace vramlab
