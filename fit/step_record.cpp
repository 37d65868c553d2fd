#include "fit/step_record.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/error.hpp"

namespace vramlab {
namespace {

// For every place of `text` how far it agrees with the beginning (the Z function).
std::vector<std::size_t> agreement(const std::vector<std::int64_t>& text) {
  std::vector<std::size_t> z(text.size(), 0);
  std::size_t left = 0;
  std::size_t right = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (i < right) z[i] = std::min(right - i, z[i - left]);
    while (i + z[i] < text.size() && text[z[i]] == text[i + z[i]]) ++z[i];
    if (i + z[i] > right) {
      left = i;
      right = i + z[i];
    }
  }
  return z;
}

// Where the repetitions begin that the history ends with, and past the last entry of each of them; empty
// without any. Of all periods (at least two equal repetitions of allocations and frees of the same sizes) the
// one is taken that explains most of the history; the shorter of two.
std::vector<std::size_t> repeated_steps(const std::vector<TraceEntry>& trace) {
  std::vector<std::int64_t> symbols;  // of allocations and frees: size + 1, and −(size + 1)
  std::vector<std::size_t> entries;   // where each stands in the history
  std::map<Address, std::int64_t> live;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const TraceEntry& entry = trace[i];
    if (entry.action == TraceEntry::Action::alloc) {
      live[entry.address] = static_cast<std::int64_t>(entry.size) + 1;
      symbols.push_back(live[entry.address]);
    } else if (entry.action == TraceEntry::Action::free_requested) {
      symbols.push_back(-live[entry.address]);
    } else {
      continue;
    }
    entries.push_back(i);
  }
  const std::vector<std::size_t> same = agreement({symbols.rbegin(), symbols.rend()});
  std::size_t period = 0;
  for (std::size_t p = 1; p < same.size(); ++p) {
    if (same[p] >= p && (period == 0 || same[p] + p > same[period] + period)) period = p;
  }
  if (period == 0) return {};
  const std::size_t repetitions = (same[period] + period) / period;
  entries.push_back(trace.size());
  std::vector<std::size_t> borders;
  for (std::size_t at = symbols.size() - repetitions * period; at <= symbols.size(); at += period) {
    borders.push_back(entries[at]);
  }
  return borders;
}

constexpr std::size_t kBuilding = static_cast<std::size_t>(-1);

struct Owner {
  std::size_t step = kBuilding;
  std::uint32_t number = 0;
  std::uint32_t born = 0;  // actions of the step before it
};

class Cutter {
 public:
  Cutter(const std::vector<TraceEntry>& trace, const std::string& name) : trace_(trace), name_(name) {}

  /// `ends`: for each mark the first entry that does not belong to it.
  RecordedRun cut(const std::vector<StepMark>& marks, const std::vector<std::size_t>& ends) {
    std::size_t at = 0;
    bool skipped = false;
    for (std::size_t m = 0; m < marks.size(); ++m) {
      if (marks[m].is_step) {
        // Marks of another run end like this, and what they say of a shape would replace what is known of it.
        if (at >= ends[m] && !marks[m].oom) {
          throw InputError(name_,
                           "no entry of the history lies between mark " + std::to_string(m + 1) +
                               ", a step, and the one before it. Are these the marks of this snapshot?");
        }
        run_.steps.push_back({.mark = marks[m]});
      } else if (!run_.steps.empty() && at < ends[m]) {
        skipped = true;
      }
      for (; at < ends[m]; ++at) enter(trace_[at], marks[m].is_step);
      if (marks[m].is_step) end_step(run_.steps.back());
    }
    if (run_.steps.empty()) {
      throw InputError(name_, "no mark has the phase \"step\". Mark the end of each step.");
    }
    if (at < trace_.size()) {
      run_.warnings.push_back(std::to_string(trace_.size() - at) +
                              " history entries lie after the last mark.");
    }
    if (skipped) {
      run_.warnings.push_back(
          "what happened in other phases between the steps is left out (validation, saving).");
    }
    name_ranks();
    return std::move(run_);
  }

 private:
  void count_segments(const TraceEntry& entry) {
    using Action = TraceEntry::Action;
    if (entry.action == Action::segment_alloc || entry.action == Action::segment_map) reserved_ += entry.size;
    if (entry.action == Action::segment_alloc) run_.segments.push_back({entry.address, entry.size});
    if (entry.action == Action::segment_free || entry.action == Action::segment_unmap) {
      reserved_ -= std::min(reserved_, entry.size);
    }
  }

  void enter(const TraceEntry& entry, bool in_step) {
    count_segments(entry);
    if (entry.action == TraceEntry::Action::oom && in_step) {
      StepRecord& step = run_.steps.back();
      step.needed = reserved_ + entry.size;
      if (!std::exchange(in_a_row_, true)) step.refusals.push_back({step.allocations.size(), {}});
      step.refusals.back().sizes.push_back(entry.size);
      return;
    }
    if (entry.action == TraceEntry::Action::alloc) {
      in_a_row_ = false;
      allocate(entry, in_step);
    } else if (entry.action == TraceEntry::Action::free_requested) {
      in_a_row_ = false;
      const auto owner = live_.find(entry.address);
      if (owner == live_.end()) {
        throw InputError(name_,
                         "a block is freed that the history never allocated. Record from the start of "
                         "the program (call _record_memory_history before the model is built).");
      }
      release(owner->second, in_step);
      live_.erase(owner);
    }
  }

  // The last refusal of a failed step is the one that the program saw.
  void end_step(StepRecord& step) {
    in_a_row_ = false;
    const std::optional<Bytes>& used = step.mark.device_used;
    if (used && *used > reserved_ && reserved_ > 0) step.outside = *used - reserved_;
    if (!step.mark.oom || step.refusals.empty()) return;
    step.refusals.back().sizes.pop_back();
    if (step.refusals.back().sizes.empty()) step.refusals.pop_back();
  }

  std::uint32_t number_of(StreamId stream) {
    if (stream != kDefaultStream && run_.steps.empty() && streams_.size() == 1) {
      run_.warnings.push_back(
          "building allocates on side streams; the model puts what it builds on the default one.");
    }
    return streams_.try_emplace(stream, static_cast<std::uint32_t>(streams_.size())).first->second;
  }

  void allocate(const TraceEntry& entry, bool in_step) {
    const std::uint32_t stream = number_of(entry.stream);
    Owner owner;
    if (run_.steps.empty()) {
      run_.build.push_back(static_cast<std::int64_t>(entry.size));
      owner.number = ++built_;
    } else if (in_step) {
      StepRecord& step = run_.steps.back();
      owner = {run_.steps.size() - 1, static_cast<std::uint32_t>(step.allocations.size()),
               static_cast<std::uint32_t>(step.actions.size())};
      step.allocations.push_back({.size = entry.size, .fate = Fate::forever, .stream = stream});
      step.actions.push_back({StepAction::Kind::allocate, owner.number});
    } else {
      owner.step = run_.steps.size();  // of no step
    }
    live_[entry.address] = owner;
  }

  void release(const Owner& owner, bool in_step) {
    if (run_.steps.empty()) {
      run_.build.push_back(-static_cast<std::int64_t>(owner.number));
      return;
    }
    const std::size_t now = run_.steps.size() - 1;
    if (owner.step == kBuilding) {  // the model frees it when building ends
      ++run_.steps[now].foreign_frees;
      run_.build.push_back(-static_cast<std::int64_t>(owner.number));
      return;
    }
    if (owner.step > now) return;
    StepAllocation& allocation = run_.steps[owner.step].allocations[owner.number];
    if (owner.step != now && run_.steps[owner.step].mark.oom) {
      allocation.fate = Fate::freed;  // when the exception went, and no gradient
    } else if (owner.step == now && in_step) {
      std::vector<StepAction>& actions = run_.steps[now].actions;
      allocation.fate = Fate::freed;
      allocation.actions = static_cast<std::uint32_t>(actions.size()) - owner.born;
      actions.push_back({StepAction::Kind::free, owner.number});
    } else {
      allocation.fate = Fate::kept;
      if (in_step) later_frees_.push_back({now, run_.steps[now].actions.size(), owner});
      if (in_step) run_.steps[now].actions.push_back({StepAction::Kind::free_kept, 0});
    }
  }

  // Ranks need to know what became of everything.
  void name_ranks() {
    for (StepAllocation& allocation : run_.steps.back().allocations) {
      if (allocation.fate == Fate::forever && run_.steps.size() > 1) allocation.fate = Fate::kept;
    }
    std::vector<std::vector<std::uint32_t>> ranks;
    for (const StepRecord& step : run_.steps) {
      std::uint32_t rank = 0;
      auto& of_step = ranks.emplace_back();
      for (const StepAllocation& allocation : step.allocations) {
        of_step.push_back(allocation.fate == Fate::kept ? rank++ : 0);
      }
    }
    for (const LaterFree& free : later_frees_) {
      run_.steps[free.step].actions[free.action].what = ranks[free.owner.step][free.owner.number];
    }
  }

  struct LaterFree {
    std::size_t step = 0;
    std::size_t action = 0;
    Owner owner;
  };

  const std::vector<TraceEntry>& trace_;
  const std::string& name_;
  RecordedRun run_;
  std::map<Address, Owner> live_;
  std::vector<LaterFree> later_frees_;
  std::uint32_t built_ = 0;
  Bytes reserved_ = 0;
  bool in_a_row_ = false;  // the entry before was a refused request, too
  std::map<StreamId, std::uint32_t> streams_{{kDefaultStream, 0}};
};

const std::vector<TraceEntry>& history_of(const TorchSnapshot& snapshot, const std::string& name) {
  for (const auto& trace : snapshot.traces) {
    if (!trace.empty()) return trace;
  }
  throw InputError(name, "holds no history. Record with torch.cuda.memory._record_memory_history().");
}

RecordedRun cut(const TorchSnapshot& snapshot, const std::vector<StepMark>& marks,
                const std::vector<std::size_t>& ends, const std::string& name) {
  RecordedRun run = Cutter(history_of(snapshot, name), name).cut(marks, ends);
  if (!snapshot.made) return run;
  const std::vector<std::string> said = sentences_of(*snapshot.made);
  run.warnings.insert(run.warnings.begin(), said.begin(), said.end());
  return run;
}

}  // namespace

std::optional<Bytes> RecordedRun::outside() const {
  constexpr Bytes kSteady = 64_MiB;
  std::optional<Bytes> last;
  for (std::size_t step = steps.size() / 2; step < steps.size(); ++step) {
    const std::optional<Bytes>& one = steps[step].outside;
    if (!one || (last && std::max(*last, *one) - std::min(*last, *one) > kSteady)) return std::nullopt;
    last = one;
  }
  return last;
}

RecordedRun cut_at_marks(const TorchSnapshot& snapshot, const std::vector<StepMark>& marks,
                         const std::string& name) {
  const std::vector<TraceEntry>& trace = history_of(snapshot, name);
  std::vector<std::size_t> ends;
  std::size_t at = 0;
  for (const StepMark& mark : marks) {
    while (at < trace.size() && trace[at].time_us <= mark.time_us) ++at;
    ends.push_back(at);
  }
  return cut(snapshot, marks, ends, name);
}

RecordedRun cut_at_entries(const TorchSnapshot& snapshot, const std::vector<StepMark>& marks,
                           const std::vector<std::size_t>& ends, const std::string& name) {
  return cut(snapshot, marks, ends, name);
}

RecordedRun cut_at_repeats(const TorchSnapshot& snapshot, const StepParameters& parameters,
                           const std::string& name) {
  const std::vector<TraceEntry>& trace = history_of(snapshot, name);
  const std::vector<std::size_t> ends = repeated_steps(trace);
  if (ends.size() < 3) {
    throw InputError(name,
                     "no step was found: the end of the history does not repeat. Record at least three "
                     "equal steps, or give the marks (--marks).");
  }
  std::vector<StepMark> marks(ends.size(), {.is_step = true, .label = "found", .parameters = parameters});
  marks[0] = {.label = "before the steps"};
  RecordedRun run = cut(snapshot, marks, ends, name);
  run.warnings.push_back(std::to_string(run.steps.size()) +
                         " equal steps were found by their repetition, without marks; what came before "
                         "counts as building, the first step of the process included.");
  return run;
}

}  // namespace vramlab
