// The window of candidates against a twin that looks at every one of them.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policies/composers/candidate_window.hpp"

namespace vramlab {
namespace {

using ::testing::ElementsAre;

using Key = std::pair<std::uint32_t, std::int32_t>;

/// What is left of `waiting`, by age, and the best of each group by its definition.
class Twin {
 public:
  Twin(const std::vector<Sample>& samples, const std::vector<SampleId>& waiting)
      : samples_(samples), left_(waiting) {}

  void take(SampleId id) {
    std::erase(left_, id);
    longest_ = std::max(longest_, samples_[id].tokens);
  }

  /// Within the longest so far the longest, beyond it the shortest; among equals the oldest.
  [[nodiscard]] std::vector<SampleId> best() const {
    std::map<Key, SampleId> groups;
    for (const SampleId id : left_) {
      const auto [place, is_new] = groups.emplace(Key{samples_[id].task, samples_[id].images}, id);
      if (!is_new && better(id, place->second)) place->second = id;
    }
    std::vector<SampleId> ids;
    for (const auto& [key, id] : groups) ids.push_back(id);
    return ids;
  }

  [[nodiscard]] std::int64_t longest() const { return longest_; }

 private:
  [[nodiscard]] bool better(SampleId id, SampleId than) const {
    const std::int64_t a = samples_[id].tokens;
    const std::int64_t b = samples_[than].tokens;
    if ((a <= longest_) != (b <= longest_)) return a <= longest_;
    return a <= longest_ ? a > b : a < b;
  }

  const std::vector<Sample>& samples_;
  std::vector<SampleId> left_;  ///< oldest first
  std::int64_t longest_ = 0;
};

std::vector<SampleId> best_of(CandidateWindow& window, std::int64_t longest,
                              const std::vector<SampleId>& waiting) {
  std::vector<SampleId> ids;
  for (std::size_t group = 0; group < window.groups(); ++group) {
    const auto candidate = window.best(group, longest);
    if (!candidate) continue;
    // Orders are those of `waiting`.
    const auto place = std::ranges::find(waiting, candidate->id);
    if (const auto other = window.best(0, longest)) {
      EXPECT_EQ(other->order < candidate->order, std::ranges::find(waiting, other->id) < place);
    }
    ids.push_back(candidate->id);
  }
  return ids;
}

std::vector<Sample> any_samples() {
  std::vector<Sample> samples;
  for (int i = 0; i < 200; ++i) {
    const auto task = *rc::gen::inRange<std::uint32_t>(0, 3);
    const auto images = *rc::gen::inRange<std::int32_t>(0, 3);
    const auto tokens = *rc::gen::inRange<std::int64_t>(1, 12);  // few, so that many are equal
    samples.push_back({task, images, tokens, tokens});
  }
  return samples;
}

// Candidates leave when they are taken, come from behind, and come back in front when a batch failed.
RC_GTEST_PROP(CandidateWindow, GivesTheBestOfEachGroupFromBatchToBatch, ()) {
  const std::vector<Sample> samples = any_samples();
  CandidateWindow window;
  std::vector<SampleId> waiting;
  SampleId next = 0;
  while (next < samples.size()) {
    for (auto more = *rc::gen::inRange(1, 40); more > 0 && next < samples.size(); --more) {
      waiting.push_back(next++);
    }
    window.reset(samples, waiting);
    Twin twin{samples, waiting};
    std::vector<SampleId> batch{window.take_oldest()};
    RC_ASSERT(batch.front() == waiting.front());
    twin.take(batch.front());
    for (auto size = *rc::gen::inRange(0, 30); size > 0; --size) {
      const auto best = twin.best();
      RC_ASSERT(best_of(window, twin.longest(), waiting) == best);
      if (best.empty()) break;
      const SampleId chosen = best[*rc::gen::inRange<std::size_t>(0, best.size())];
      for (std::size_t group = 0; group < window.groups(); ++group) {
        const auto candidate = window.best(group, twin.longest());
        if (candidate && candidate->id == chosen) window.take(group);
      }
      twin.take(chosen);
      batch.push_back(chosen);
    }
    std::erase_if(waiting,
                  [&](SampleId id) { return std::find(batch.begin(), batch.end(), id) != batch.end(); });
    if (*rc::gen::inRange(0, 4) == 0) waiting.insert(waiting.begin(), batch.begin(), batch.end());
  }
}

TEST(CandidateWindow, ForgetsGroupsThatNobodyWaitsIn) {
  const std::vector<Sample> samples{{.task = 0, .tokens = 5}, {.task = 1, .tokens = 7}};
  CandidateWindow window;
  window.reset(samples, std::vector<SampleId>{0, 1});
  EXPECT_EQ(window.groups(), 2u);
  window.reset(samples, std::vector<SampleId>{1});
  EXPECT_EQ(window.groups(), 1u);
  EXPECT_THAT(best_of(window, 0, {1}), ElementsAre(1u));
}

}  // namespace
}  // namespace vramlab
