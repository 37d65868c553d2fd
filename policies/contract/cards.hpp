// The cards of a cluster: an index by what each can take, and the jobs that run on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "policies/contract/jobs.hpp"

namespace vramlab {

using CardId = std::uint32_t;
using NodeId = std::uint32_t;

/// Cards of one kind: equal memory. At most 64 pools, so that a `PoolMask` names any set of them.
struct CardPool {
  Bytes total = 0;  ///< what each card offers to jobs
};

/// Cards of one machine; a job with several cards gets them on one node.
struct CardNode {
  std::uint32_t pool = 0;
  CardId first = 0;
  std::uint32_t count = 0;  ///< its cards are first … first + count − 1
};

/// How a place is chosen where several fit.
enum class FitRule : std::uint8_t {
  first,      ///< lowest card number
  best,       ///< least left over
  worst,      ///< most left over
  fragments,  ///< least memory made useless for the demands seen so far; among equals least left over
};

/// For every card a number of bytes that it can still take, or that it takes no more jobs. Keeps itself
/// ordered for the one rule it was made for.
class CardIndex {
 public:
  /// What a job may refuse a single card for; null = none is refused. Gets the bytes needed on the card.
  using Accept = std::function<bool(CardId, Bytes)>;
  /// What a card gives of the bytes that it can still take; no more than these.
  using Give = std::function<Bytes(CardId, Bytes available)>;
  /// Cost of taking `need` of `available` bytes; the lowest wins. Only for FitRule::fragments.
  using Cost = std::function<std::int64_t(Bytes available, Bytes need)>;

  /// Cards where a job fits, all of one node.
  struct Place {
    std::vector<CardId> cards;
    Bytes need = 0;  ///< on each card
  };

  /// Nodes lie in the order of their cards. All cards begin closed.
  CardIndex(std::vector<CardPool> pools, std::vector<CardNode> nodes, FitRule rule);

  /// Sets what `card` can take; empty = no further job at all. Cost O(log cards) for each number of cards
  /// per job that was ever looked for.
  void set(CardId card, std::optional<Bytes> available);

  /// The best place for `demand` at `batch`; empty if none fits. Equal places: the lower card wins.
  [[nodiscard]] std::optional<Place> find(const JobDemand& demand, std::int64_t batch,
                                          const Accept& accept = {}, const Cost& cost = {});

  /// The most that as many cards of one node as are asked for give each; 0 if there are none. Only cards are
  /// looked at that could take more than the best so far.
  [[nodiscard]] Bytes most_given(const CardsAsked& asked, const Give& give);

  /// How often `find` was called: work that is to grow with the jobs that start, not with those that wait.
  [[nodiscard]] std::size_t searches() const { return searches_; }

  /// What the card can take; empty if it is closed.
  [[nodiscard]] std::optional<Bytes> available(CardId card) const;

  [[nodiscard]] std::span<const CardPool> pools() const { return pools_; }
  [[nodiscard]] std::span<const CardNode> nodes() const { return nodes_; }
  [[nodiscard]] NodeId node_of(CardId card) const { return node_of_[card]; }
  [[nodiscard]] const CardPool& pool_of(CardId card) const { return pools_[nodes_[node_of_[card]].pool]; }

  /// Largest total among the cards that `demand` may use where enough of them sit on one node; 0 if none do.
  [[nodiscard]] Bytes largest_total(const JobDemand& demand) const;

 private:
  using Value = std::int64_t;  // −1 = closed
  /// The units of one pool for jobs with `cards` cards: single cards, or nodes by their cards-th freest card.
  struct Lane {
    std::int32_t cards = 1;
    std::uint32_t pool = 0;
    std::vector<std::uint32_t> units;                 ///< card or node of each place in `values`
    std::vector<Value> values;                        ///< by place
    std::vector<Value> tree;                          ///< maxima, for FitRule::first
    std::size_t leaves = 0;                           ///< of the tree, a power of two
    std::set<std::pair<Value, std::uint32_t>> sizes;  ///< value and place, for the other rules
  };
  /// A place with how good it is; lower is better.
  struct Candidate {
    std::int64_t score = 0;
    Place place;
  };

  Lane& lane(std::uint32_t pool, std::int32_t cards);
  [[nodiscard]] Value value_of(const Lane& lane, std::uint32_t unit) const;
  void store(Lane& lane, std::uint32_t place, Value value) const;
  [[nodiscard]] static std::optional<std::uint32_t> next_at_least(const Lane& lane, std::uint32_t from,
                                                                  Value need);
  [[nodiscard]] Value given(const Lane& lane, std::uint32_t place, const Give& give) const;
  [[nodiscard]] bool collect(const Lane& lane, std::uint32_t place, Bytes need, const Accept& accept,
                             std::vector<CardId>& cards) const;
  [[nodiscard]] std::optional<Candidate> search_first(const Lane& lane, Bytes need,
                                                      const Accept& accept) const;
  [[nodiscard]] std::optional<Candidate> search_worst(const Lane& lane, Bytes need,
                                                      const Accept& accept) const;
  [[nodiscard]] std::optional<Candidate> search_sized(const Lane& lane, Bytes need, const Accept& accept,
                                                      const Cost& cost) const;

  std::vector<CardPool> pools_;
  std::vector<CardNode> nodes_;
  FitRule rule_;
  std::vector<NodeId> node_of_;
  std::vector<Value> available_;
  std::vector<std::uint32_t> place_in_pool_;       ///< of a card among its pool's cards
  std::vector<std::uint32_t> node_place_in_pool_;  ///< of a node among its pool's nodes
  std::vector<Lane> lanes_;
  std::size_t searches_ = 0;
};

// The jobs that hold memory, by node and expected end: what a reservation for a later start rests on.

/// One running job.
struct RunningJob {
  SimTime expected_end{SimTime::max()};  ///< max = it does not say
  JobId job = 0;
  Bytes promised = 0;  ///< on each card
  Bytes used = 0;      ///< on each card, now
  std::vector<CardId> cards;
};

/// Every node's running jobs, those that should end first in front, and a number that changes with them.
class RunningJobs {
 public:
  explicit RunningJobs(std::size_t nodes) : jobs_(nodes), versions_(nodes) {}

  void add(NodeId node, RunningJob job) {
    change(node, [&](std::vector<RunningJob>& jobs) {
      const auto at = std::upper_bound(
          jobs.begin(), jobs.end(), job,
          [](const RunningJob& a, const RunningJob& b) { return a.expected_end < b.expected_end; });
      jobs.insert(at, std::move(job));
    });
  }

  void remove(NodeId node, JobId job) {
    change(node, [&](std::vector<RunningJob>& jobs) {
      std::erase_if(jobs, [&](const RunningJob& running) { return running.job == job; });
    });
  }

  /// The job now uses this many bytes on each of its cards.
  void set_used(NodeId node, JobId job, Bytes used) {
    for (RunningJob& running : jobs_[node]) {
      if (running.job == job) running.used = used;
    }
    touch(node);
  }

  /// Anything else about the node changed.
  void touch(NodeId node) { ++versions_[node]; }

  [[nodiscard]] const std::vector<RunningJob>& on(NodeId node) const { return jobs_[node]; }
  [[nodiscard]] std::uint64_t version(NodeId node) const { return versions_[node]; }
  /// Nodes with jobs, by the time at which their first one should end.
  [[nodiscard]] const std::set<std::pair<SimTime, NodeId>>& by_first_end() const { return by_first_end_; }

 private:
  template <class Change>
  void change(NodeId node, const Change& change) {
    auto& jobs = jobs_[node];
    const auto first_end = [&] { return jobs.empty() ? std::nullopt : std::optional{jobs[0].expected_end}; };
    const auto before = first_end();
    change(jobs);
    touch(node);
    const auto after = first_end();
    if (before == after) return;
    if (before) by_first_end_.erase({*before, node});
    if (after) by_first_end_.emplace(*after, node);
  }

  std::vector<std::vector<RunningJob>> jobs_;
  std::set<std::pair<SimTime, NodeId>> by_first_end_;
  std::vector<std::uint64_t> versions_;
};

}  // namespace vramlab
