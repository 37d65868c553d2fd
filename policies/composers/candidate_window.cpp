#include "policies/composers/candidate_window.hpp"

#include <algorithm>
#include <tuple>

namespace vramlab {
namespace {

std::uint64_t key_of(const Sample& sample) {
  return (std::uint64_t{sample.task} << 32) | static_cast<std::uint32_t>(sample.images);
}

// Of equal lengths the oldest last: the best one within is taken from the end.
template <class Entry>
bool comes_before(const Entry& a, const Entry& b) {
  return std::tie(a.tokens, b.order) < std::tie(b.tokens, a.order);
}

}  // namespace

void CandidateWindow::reset(std::span<const Sample> samples, std::span<const SampleId> waiting) {
  samples_ = samples;
  drop_gone(waiting);
  add_arrivals(waiting);
  std::erase_if(groups_, [](const Group& one) { return one.entries.empty(); });
  for (Group& group : groups_) group.beyond = group.within = 0;
}

// Those stay that `waiting` begins with, in the same order. Whatever else it holds, one that was put back in
// front of them included, is an arrival, and those missing are gone: as a rule those that were taken, whose
// entries say so already.
void CandidateWindow::drop_gone(std::span<const SampleId> waiting) {
  std::ranges::sort(taken_, {}, &Known::order);
  auto taken = taken_.begin();
  std::size_t stayed = 0;
  for (const Known& known : known_) {
    const bool was_taken = taken != taken_.end() && taken->order == known.order;
    if (was_taken) ++taken;
    const bool stays = stayed < waiting.size() && waiting[stayed] == known.id;
    if (stays == was_taken) entry_of(known).taken = !stays;
    if (stays) known_[stayed++] = known;
  }
  taken_.clear();
  if (stayed == known_.size()) return;
  known_.resize(stayed);
  for (Group& group : groups_) std::erase_if(group.entries, [](const Entry& entry) { return entry.taken; });
}

void CandidateWindow::add_arrivals(std::span<const SampleId> waiting) {
  arrivals_.clear();
  for (const SampleId id : waiting.subspan(known_.size())) {
    const Sample& sample = samples_[id];
    arrivals_.push_back({key_of(sample), {sample.tokens, next_order_, id, false}});
    known_.push_back({id, next_order_++});
  }
  std::sort(arrivals_.begin(), arrivals_.end(), [](const Arrival& a, const Arrival& b) {
    return a.key != b.key ? a.key < b.key : comes_before(a.entry, b.entry);
  });
  for (auto arrival = arrivals_.begin(); arrival != arrivals_.end();) {
    const std::uint64_t key = arrival->key;
    auto group = std::ranges::lower_bound(groups_, key, {}, &Group::key);
    if (group == groups_.end() || group->key != key) group = groups_.insert(group, Group{.key = key});
    merged_.clear();
    auto stayed = group->entries.begin();
    for (; arrival != arrivals_.end() && arrival->key == key; ++arrival) {
      const auto to = std::lower_bound(stayed, group->entries.end(), arrival->entry, comes_before<Entry>);
      merged_.insert(merged_.end(), stayed, to);
      merged_.push_back(arrival->entry);
      stayed = to;
    }
    merged_.insert(merged_.end(), stayed, group->entries.end());
    std::swap(group->entries, merged_);
  }
}

CandidateWindow::Entry& CandidateWindow::entry_of(const Known& known) {
  const Sample& sample = samples_[known.id];
  auto& entries = std::ranges::lower_bound(groups_, key_of(sample), {}, &Group::key)->entries;
  const Entry wanted{.tokens = sample.tokens, .order = known.order};
  return *std::lower_bound(entries.begin(), entries.end(), wanted, comes_before<Entry>);
}

SampleId CandidateWindow::take_oldest() {
  entry_of(known_.front()).taken = true;
  taken_.push_back(known_.front());
  return known_.front().id;
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
  return Candidate{entries[group.best].id, entries[group.best].order};
}

void CandidateWindow::take(std::size_t number) {
  Group& group = groups_[number];
  Entry& entry = group.entries[group.best];
  entry.taken = true;
  taken_.push_back({entry.id, entry.order});
}

}  // namespace vramlab
