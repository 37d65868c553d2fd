#include "policies/window.hpp"

#include <algorithm>
#include <tuple>

namespace vramlab {

void CandidateWindow::reset(std::span<const Sample> samples, std::span<const SampleId> waiting) {
  entries_.clear();
  for (std::uint32_t age = 0; age < waiting.size(); ++age) {
    const Sample& sample = samples[waiting[age]];
    entries_.push_back({(std::uint64_t{sample.task} << 32) | static_cast<std::uint32_t>(sample.images),
                        sample.tokens, age, waiting[age], false});
  }
  // of equal lengths the oldest last: the best one within is taken from the end
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.group_key, a.tokens, b.age) < std::tie(b.group_key, b.tokens, a.age);
  });
  groups_.clear();
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    if (i == 0 || entries_[i].group_key != entries_[i - 1].group_key) groups_.push_back({{}, i, i, i});
    groups_.back().end = i + 1;
    if (entries_[i].age == 0) oldest_ = i;
  }
}

SampleId CandidateWindow::take_oldest() {
  entries_[oldest_].taken = true;
  return entries_[oldest_].id;
}

std::optional<CandidateWindow::Candidate> CandidateWindow::best(std::size_t number, std::int64_t longest) {
  Group& group = groups_[number];
  for (; group.next < group.end && entries_[group.next].tokens <= longest; ++group.next) {
    if (!entries_[group.next].taken) group.within.push_back(group.next);
  }
  if (!group.within.empty()) {
    group.best = group.within.back();
  } else {
    while (group.next < group.end && entries_[group.next].taken) ++group.next;
    if (group.next == group.end) return std::nullopt;
    group.best = group.next;  // and of equal lengths the oldest
    for (std::uint32_t i = group.next; i < group.end && entries_[i].tokens == entries_[group.next].tokens;
         ++i) {
      if (!entries_[i].taken) group.best = i;
    }
  }
  return Candidate{entries_[group.best].id, entries_[group.best].age};
}

void CandidateWindow::take(std::size_t number) {
  Group& group = groups_[number];
  entries_[group.best].taken = true;
  if (!group.within.empty()) group.within.pop_back();
}

}  // namespace vramlab
