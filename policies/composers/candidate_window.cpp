#include "policies/composers/candidate_window.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace vramlab {
namespace {

constexpr std::uint32_t kGone = std::numeric_limits<std::uint32_t>::max();

std::uint64_t key_of(const Sample& sample) {
  return (std::uint64_t{sample.task} << 32) | static_cast<std::uint32_t>(sample.images);
}

// Of equal lengths the oldest last: the best one within is taken from the end.
template <class Entry>
bool comes_before(const Entry& a, const Entry& b) {
  return std::tie(a.tokens, b.age) < std::tie(b.tokens, a.age);
}

}  // namespace

void CandidateWindow::reset(std::span<const Sample> samples, std::span<const SampleId> waiting) {
  follow(waiting);
  sort_arrivals(samples, waiting);
  auto group = groups_.begin();
  for (auto arrival = arrivals_.begin(); arrival != arrivals_.end();) {
    const auto end =
        std::find_if(arrival, arrivals_.end(), [&](const Arrival& one) { return one.key != arrival->key; });
    for (; group != groups_.end() && group->key < arrival->key; ++group) merge(*group, {});
    if (group == groups_.end() || group->key != arrival->key) {
      group = groups_.insert(group, Group{.key = arrival->key});
    }
    merge(*group, {arrival, end});
    ++group;
    arrival = end;
  }
  for (; group != groups_.end(); ++group) merge(*group, {});
  std::erase_if(groups_, [](const Group& one) { return one.entries.empty(); });
  if (!waiting.empty()) oldest_key_ = key_of(samples[waiting.front()]);
}

// Which candidates stayed: those that `waiting` begins with, in the same order. Whatever else it holds, one
// that was put back in front of them included, is an arrival, and those missing are gone.
void CandidateWindow::follow(std::span<const SampleId> waiting) {
  new_age_.resize(known_.size());
  stayed_ = 0;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    const bool stays = stayed_ < waiting.size() && waiting[stayed_] == known_[i];
    new_age_[i] = stays ? static_cast<std::uint32_t>(stayed_++) : kGone;
  }
  known_.assign(waiting.begin(), waiting.end());
}

void CandidateWindow::sort_arrivals(std::span<const Sample> samples, std::span<const SampleId> waiting) {
  arrivals_.clear();
  for (std::size_t age = stayed_; age < waiting.size(); ++age) {
    const Sample& sample = samples[waiting[age]];
    arrivals_.push_back(
        {key_of(sample), {sample.tokens, static_cast<std::uint32_t>(age), waiting[age], false}});
  }
  std::sort(arrivals_.begin(), arrivals_.end(), [](const Arrival& a, const Arrival& b) {
    return a.key != b.key ? a.key < b.key : comes_before(a.entry, b.entry);
  });
}

void CandidateWindow::merge(Group& group, std::span<const Arrival> arrivals) {
  merged_.clear();
  for (Entry& entry : group.entries) {
    entry.age = new_age_[entry.age];
    if (entry.age == kGone) continue;
    entry.taken = false;
    for (; !arrivals.empty() && comes_before(arrivals.front().entry, entry); arrivals = arrivals.subspan(1)) {
      merged_.push_back(arrivals.front().entry);
    }
    merged_.push_back(entry);
  }
  for (const Arrival& arrival : arrivals) merged_.push_back(arrival.entry);
  group.entries.swap(merged_);
  group.beyond = 0;
  group.within = 0;
}

SampleId CandidateWindow::take_oldest() {
  const auto group =
      std::find_if(groups_.begin(), groups_.end(), [&](const Group& one) { return one.key == oldest_key_; });
  const auto oldest = std::find_if(group->entries.begin(), group->entries.end(),
                                   [](const Entry& entry) { return entry.age == 0; });
  oldest->taken = true;
  return oldest->id;
}

std::optional<CandidateWindow::Candidate> CandidateWindow::best(std::size_t number, std::int64_t longest) {
  Group& group = groups_[number];
  const auto& entries = group.entries;
  if (group.beyond < entries.size() && entries[group.beyond].tokens <= longest) {
    while (group.beyond < entries.size() && entries[group.beyond].tokens <= longest) ++group.beyond;
    group.within = group.beyond;
  }
  while (group.within > 0 && entries[group.within - 1].taken) --group.within;
  if (group.within > 0) {
    group.best = group.within - 1;
  } else {
    while (group.beyond < entries.size() && entries[group.beyond].taken) ++group.beyond;
    if (group.beyond == entries.size()) return std::nullopt;
    group.best = group.beyond;  // and of equal lengths the oldest
    for (std::size_t i = group.beyond;
         i < entries.size() && entries[i].tokens == entries[group.beyond].tokens; ++i) {
      if (!entries[i].taken) group.best = i;
    }
  }
  return Candidate{entries[group.best].id, entries[group.best].age};
}

void CandidateWindow::take(std::size_t number) {
  Group& group = groups_[number];
  group.entries[group.best].taken = true;
}

}  // namespace vramlab
