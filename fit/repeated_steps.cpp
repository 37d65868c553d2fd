#include "fit/repeated_steps.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

namespace vramlab {
namespace {

/// The program's own actions as numbers that are equal where the actions are.
struct Actions {
  std::vector<std::int64_t> symbols;  ///< size of an allocation; −size of a free
  std::vector<std::size_t> entries;   ///< where each stands in the history
};

Actions actions_of(const std::vector<TraceEntry>& trace) {
  Actions actions;
  std::map<Address, std::int64_t> live;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const TraceEntry& entry = trace[i];
    if (entry.action == TraceEntry::Action::alloc) {
      live[entry.address] = static_cast<std::int64_t>(entry.size) + 1;
      actions.symbols.push_back(live[entry.address]);
    } else if (entry.action == TraceEntry::Action::free_requested) {
      actions.symbols.push_back(-live[entry.address]);
    } else {
      continue;
    }
    actions.entries.push_back(i);
  }
  return actions;
}

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

}  // namespace

RepeatedSteps find_repeated_steps(const std::vector<TraceEntry>& trace) {
  Actions actions = actions_of(trace);
  std::vector<std::int64_t> backwards(actions.symbols.rbegin(), actions.symbols.rend());
  const std::vector<std::size_t> same = agreement(backwards);
  std::size_t period = 0;
  for (std::size_t p = 1; p < same.size(); ++p) {
    if (same[p] >= p && (period == 0 || same[p] + p > same[period] + period)) period = p;
  }
  RepeatedSteps steps;
  if (period == 0) return steps;
  const std::size_t count = (same[period] + period) / period;
  const std::size_t first = actions.symbols.size() - count * period;
  steps.begin = actions.entries[first];
  for (std::size_t step = 1; step <= count; ++step) {
    const std::size_t end = first + step * period;
    steps.ends.push_back(end < actions.entries.size() ? actions.entries[end] : trace.size());
  }
  return steps;
}

}  // namespace vramlab
