#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "fit/alignment.hpp"
#include "fit/step_record.hpp"
#include "recordings/lifetimes/rhythm.hpp"
#include "recordings/scripts/recorded_program.hpp"

namespace vramlab {
namespace {

using Entries = std::vector<TraceEntry>;
using Places = std::vector<std::size_t>;  // in a history

bool is_free(const TraceEntry& entry) {
  return entry.action == TraceEntry::Action::free_requested ||
         entry.action == TraceEntry::Action::free_completed;
}

// What goes when the function of a step returns belongs to the step; not what comes after the entry `until`.
std::size_t past_frees(const Entries& trace, std::size_t at, std::size_t until) {
  while (at < until && is_free(trace[at])) ++at;
  return at;
}

// Where steps end: each ends with the last of its optimizers. Empty if there are not as many notes of each
// kind of optimizer as steps.
Places ends_of_optimizers(const TorchSnapshot& snapshot, int device, const Entries& trace,
                          std::size_t steps) {
  std::map<std::string, std::vector<std::int64_t>> times;  // by kind of optimizer
  std::vector<std::int64_t> cleared;                       // gradients; that begins the next step
  for (const SnapshotAnnotation& note : snapshot.annotations) {
    if (note.device == device && !note.start && note.name.starts_with("Optimizer.step"))
      times[note.name].push_back(note.time_us);
    if (note.device == device && note.start && note.name.starts_with("Optimizer.zero_grad"))
      cleared.push_back(note.time_us);
  }
  if (times.empty()) return {};
  for (auto& [kind, of_kind] : times) {
    if (of_kind.size() != steps) return {};
    std::sort(of_kind.begin(), of_kind.end());
  }
  std::sort(cleared.begin(), cleared.end());
  Places ends;
  std::size_t at = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    std::int64_t time = 0;
    for (const auto& [kind, of_kind] : times) time = std::max(time, of_kind[step]);
    while (at < trace.size() && trace[at].time_us <= time) ++at;
    const auto next = std::upper_bound(cleared.begin(), cleared.end(), time);
    std::size_t until = at;
    while (until < trace.size() && (next == cleared.end() || trace[until].time_us < *next)) ++until;
    at = past_frees(trace, at, until);
    ends.push_back(at);
  }
  return ends;
}

/// Bytes in use after each action of a program.
std::vector<Bytes> levels_of(const ClientProgram& program) {
  std::vector<Bytes> sizes(program.blocks, 0);
  std::vector<Bytes> levels;
  Bytes level = 0;
  for (const ClientAction& action : program.actions) {
    if (action.kind == ClientAction::Kind::alloc) level += sizes[action.block] = action.bytes;
    if (action.kind == ClientAction::Kind::free) level -= std::exchange(sizes[action.block], 0);
    levels.push_back(level);
  }
  return levels;
}

// Where steps end by their gradients: at the last moment between the birth of a step's last gradient (and of
// what it keeps for good) and the first free of its gradients (or the birth of the next step's first one) at
// which least memory was in use.
Places ends_of_gradients(const TorchSnapshot& snapshot, int device, const Entries& trace) {
  const ClientProgram program = program_of(snapshot, device, {});
  const std::vector<Bytes> levels = levels_of(program);
  Places action_of_beat;
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    const ClientAction::Kind kind = program.actions[i].kind;
    if (kind == ClientAction::Kind::alloc || kind == ClientAction::Kind::free) action_of_beat.push_back(i);
  }
  const Beats beats(program);
  const std::vector<StepGradients> steps = find_gradients(beats, std::vector<bool>(program.blocks));
  Places ends;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const Beat next = step + 1 < steps.size() ? steps[step + 1].first : kNeverFreed;
    const Beat until = std::min({next, steps[step].freed, static_cast<Beat>(action_of_beat.size())});
    Beat from = steps[step].last;
    for (const ProgramBlock block : beats.kept) {  // the first step of an optimizer makes its state
      const Beat birth = beats.blocks[block].birth;
      if (birth > from && birth < until) from = birth;
    }
    Bytes least = std::numeric_limits<Bytes>::max();
    std::size_t end = 0;
    for (Beat beat = from; beat < until && beat < action_of_beat.size(); ++beat) {
      const std::size_t action = action_of_beat[beat];
      if (levels[action] > least) continue;
      least = levels[action];
      end = program.actions[action].source + 1;
    }
    ends.push_back(step + 1 < steps.size() ? end : trace.size());
  }
  return ends;
}

// Places of the allocations between two places of a history.
Places allocations(const Entries& trace, std::size_t from, std::size_t to) {
  Places places;
  for (std::size_t i = from; i < to; ++i) {
    if (trace[i].action == TraceEntry::Action::alloc) places.push_back(i);
  }
  return places;
}

// Where the first step begins: at what belongs to the first allocation of another step with its parameters,
// if nearly all of that one's allocations are there, one after the other. Else the first step counts as
// building, and this is its end.
std::size_t begin_of_first(const Entries& trace, const Places& ends,
                           const std::vector<StepParameters>& steps) {
  constexpr std::size_t kNearlyAllOf = 10;  // all but a tenth
  for (std::size_t step = 1; step < steps.size(); ++step) {
    if (!(steps[step] == steps[0])) continue;
    const Places first = allocations(trace, 0, ends[0]);
    const Places other = allocations(trace, ends[step - 1], ends[step]);
    const auto same = align_sequences(first.size(), other.size(), [&](std::size_t i, std::size_t j) {
      return trace[first[i]].size == trace[other[j]].size ? 1 : 0;
    });
    if (same.empty() || same.size() + other.size() / kNearlyAllOf < other.size()) continue;
    return first[same[0].first];
  }
  return ends[0];
}

const Entries& history_on(const TorchSnapshot& snapshot, const std::string& name, int& device) {
  for (device = 0; device < static_cast<int>(snapshot.traces.size()); ++device) {
    if (!snapshot.traces[static_cast<std::size_t>(device)].empty())
      return snapshot.traces[static_cast<std::size_t>(device)];
  }
  throw InputError(name, "holds no history. Record with torch.cuda.memory._record_memory_history().");
}

}  // namespace

RecordedRun cut_at_optimizers(const TorchSnapshot& snapshot, const std::vector<StepParameters>& steps,
                              const std::string& name) {
  int device = 0;
  const Entries& trace = history_on(snapshot, name, device);
  std::string from = "the notes of its optimizer";
  Places ends = ends_of_optimizers(snapshot, device, trace, steps.size());
  if (ends.empty()) {
    from = "its gradients";
    ends = ends_of_gradients(snapshot, device, trace);
  }
  if (ends.size() != steps.size()) {
    throw InputError(name, "its gradients show " + std::to_string(ends.size()) +
                               " steps, and --steps names " + std::to_string(steps.size()) +
                               ". Name every step of the recording, or give the marks (--marks).");
  }
  const std::size_t begin = begin_of_first(trace, ends, steps);
  const bool has_first = begin < ends[0];
  std::vector<StepMark> marks{{.label = "before the steps"}};
  for (std::size_t step = has_first ? 0 : 1; step < steps.size(); ++step) {
    StepMark& mark = marks.emplace_back(StepMark{.is_step = true, .parameters = steps[step]});
    for (const auto& [key, value] : steps[step].scalars) {
      mark.label += (mark.label.empty() ? "" : " ") + key + std::to_string(value);
    }
  }
  ends.insert(ends.begin() + (has_first ? 0 : 1), begin);
  if (!has_first) ends.erase(ends.begin());
  RecordedRun run = cut_at_entries(snapshot, marks, ends, name);
  run.warnings.push_back(
      "the " + std::to_string(steps.size()) + " steps were found by " + from +
      (has_first ? "." : "; the first one counts as building, for no other has its parameters."));
  return run;
}

}  // namespace vramlab
