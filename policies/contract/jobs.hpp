// Jobs as an admitter sees them: what they ask of a card, and which of them wait.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/size_map.hpp"
#include "core/units.hpp"

namespace vramlab {

/// Which cards a job may run on: bit i stands for pool i of a `CardIndex`.
using PoolMask = std::uint64_t;
inline constexpr PoolMask kAnyPool = ~PoolMask{0};

/// Another way to run a job, such as with mixed precision or activation checkpointing, and what it needs
/// then.
struct DemandVariant {
  std::string name;
  Bytes fixed = 0;
  Bytes per_sample = 0;
  std::int64_t least_batch = 1;

  friend auto operator<=>(const DemandVariant&, const DemandVariant&) = default;
};

/// A declared need of memory on each of `cards` cards of one node.
///
/// It is `fixed` + `per_sample` · batch bytes, or, where `share_milli` is not 0, that many thousandths of
/// whichever card the job is placed on (what is promised and enforced is bytes either way).
struct JobDemand {
  Bytes fixed = 0;
  Bytes per_sample = 0;
  std::int64_t least_batch = 1;  ///< smaller batches need as much as this one
  std::int64_t share_milli = 0;  ///< 1 to 1000; 0 = the demand is in bytes
  std::int64_t batch = 1;        ///< asked for; at least 1
  std::int64_t effective = 1;  ///< samples an optimizer step is to see, whatever the batch; at least `batch`
  std::int32_t cards = 1;      ///< at least 1
  std::int32_t priority = 0;   ///< higher goes first
  std::uint32_t account = 0;   ///< whose quota it counts against
  PoolMask pools = kAnyPool;
  bool overdue = false;                 ///< it has waited as long as it is to for its full batch
  std::vector<DemandVariant> variants;  ///< in the order in which they are to be tried; not with a share

  /// Bytes on each card at `with_batch`, on a card that offers `card_total`.
  [[nodiscard]] Bytes need(std::int64_t with_batch, Bytes card_total) const;

  /// True if a smaller batch needs less, or a variant may.
  [[nodiscard]] bool shrinks() const {
    return share_milli == 0 && ((per_sample > 0 && batch > least_batch) || !variants.empty());
  }

  /// The same job run as its variant number `variant`, from 1, and no other; itself for 0.
  [[nodiscard]] JobDemand as_variant(std::size_t variant) const;

  friend auto operator<=>(const JobDemand&, const JobDemand&) = default;
};

/// A micro-batch and how many of them make one optimizer step; and which variant of the job performs them.
struct BatchSplit {
  std::int64_t batch = 1;
  std::int64_t accumulation = 1;
  std::size_t variant = 0;  ///< from 1; 0 = the job as it is

  [[nodiscard]] std::int64_t effective() const { return batch * accumulation; }
  friend bool operator==(const BatchSplit&, const BatchSplit&) = default;
};

/// The split of `original` that runs at most `batch` samples at once and keeps original = batch ·
/// accumulation: the largest divisor that is not above `batch` (30 at most 7 is 6 · 5).
BatchSplit exact_split(std::int64_t original, std::int64_t batch);

/// The original's: original // batch steps of `batch`. The effective batch may come out smaller (30 at 7 is
/// 7 · 4 = 28).
BatchSplit halved_split(std::int64_t original, std::int64_t batch);

// The jobs that wait for memory, grouped by what they ask for: what does not fit one does not fit its group.

using JobId = std::uint32_t;
using GroupId = std::uint32_t;

/// One waiting job. Tickets are unique and say who came first; a job sent to the back draws a new one.
struct WaitingJob {
  std::uint64_t ticket = 0;
  JobId job = 0;
  SimTime since{0};                  ///< when it was submitted: what ageing counts from
  SimTime expected{SimTime::max()};  ///< how long it says it runs; max = it does not say

  friend bool operator<(const WaitingJob& a, const WaitingJob& b) { return a.ticket < b.ticket; }
};

/// A group at its first job: higher priority first, then the lower ticket.
struct GroupTurn {
  std::int64_t priority = 0;
  std::uint64_t ticket = 0;
  GroupId group = 0;

  friend bool operator<(const GroupTurn& a, const GroupTurn& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.ticket < b.ticket;
  }
};

/// What a demand asks for beside bytes: how many cards of one node, and of which pools.
struct CardsAsked {
  std::int32_t cards = 1;
  PoolMask pools = kAnyPool;

  friend bool operator==(const CardsAsked&, const CardsAsked&) = default;
};

/// All waiting jobs. Groups keep their numbers for ever; those with jobs are listed in `occupied`.
class WaitingJobs {
 public:
  /// Bytes that a job may need at most on each of the cards it asks for.
  using Most = std::function<Bytes(const CardsAsked&)>;

  /// `least_need` = bytes without which no card can take a job with that demand (Admitter::least_need).
  explicit WaitingJobs(std::function<Bytes(const JobDemand&)> least_need = {})
      : least_need_(std::move(least_need)) {}

  /// The group of all jobs with this demand.
  GroupId group_of(const JobDemand& demand);

  void add(GroupId group, const WaitingJob& job);
  /// Throws InternalError if no job with that ticket waits in the group.
  void remove(GroupId group, std::uint64_t ticket);

  [[nodiscard]] const JobDemand& demand(GroupId group) const { return groups_[group].demand; }
  [[nodiscard]] const std::set<WaitingJob>& jobs(GroupId group) const { return groups_[group].jobs; }
  /// Groups with at least one job, in no particular order.
  [[nodiscard]] std::span<const GroupId> occupied() const { return occupied_; }
  /// The first group at `from` or behind it that may need no more than `most` of its cards; empty if there is
  /// none. Cost O(log groups) for each CardsAsked that differs.
  [[nodiscard]] std::optional<GroupTurn> next(const GroupTurn& from, const Most& most) const;
  /// All groups that may need no more than `most` of their cards and have a job that says it runs for at most
  /// `longest`, in no particular order. Cost O(log groups) for each, and for each CardsAsked that differs.
  [[nodiscard]] std::vector<GroupTurn> shorter(SimTime longest, const Most& most) const;
  /// What a policy is asked in one moment begins: `touched` is empty.
  void begin_pass() { touched_.clear(); }
  /// The turns that groups had before their first job changed in this pass; without a ticket if they had
  /// none.
  struct Touched {
    GroupId group = 0;
    std::optional<std::uint64_t> ticket;
  };
  [[nodiscard]] std::span<const Touched> touched() const { return touched_; }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  struct Group {
    JobDemand demand;
    std::set<WaitingJob> jobs;
    std::multiset<SimTime> lengths;  ///< what its jobs say they run
    std::uint32_t listed_at = 0;     ///< place in `occupied_`, while it has jobs
    std::size_t queue = 0;           ///< of `queues_`
    Bytes least_need = 0;
  };
  /// Groups with jobs that ask for the same cards, each with the largest number less its need.
  struct Queue {
    CardsAsked asked;
    SizeMap<GroupTurn> turns;
    SizeMap<std::pair<SimTime, GroupId>> lengths;  ///< by the shortest job of each
  };
  std::size_t queue_of(const CardsAsked& asked);
  [[nodiscard]] GroupTurn turn_of(GroupId group) const;
  void leave_turn(GroupId group);
  void take_turn(GroupId group);

  std::function<Bytes(const JobDemand&)> least_need_;
  std::vector<Group> groups_;
  std::map<JobDemand, GroupId> ids_;
  std::vector<GroupId> occupied_;
  std::vector<Queue> queues_;
  std::vector<Touched> touched_;
  std::size_t size_ = 0;
};

}  // namespace vramlab
