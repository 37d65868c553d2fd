// What is kept of the cards of a cluster: the host's books on them, and who was on which when.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/contract/admitter.hpp"
#include "policies/contract/jobs.hpp"
#include "sim/runs/job.hpp"

namespace vramlab {

/// The cards a queue shares out. A card's total is what its driver leaves of it (K4-10).
struct ClusterSetup {
  std::vector<CardPool> pools;
  std::vector<CardNode> nodes;
  std::vector<std::optional<Bytes>> quotas{std::nullopt};  ///< by account
};

/// A process that no job of the queue started.
struct Stranger {
  CardId card = 0;
  SimTime from{0};
  SimTime to{SimTime::max()};  ///< max = until the end
  Bytes bytes = 0;
  std::int32_t busy_milli = 0;  ///< how much of the card's time it takes, in thousandths
};

/// One change of a card, for the time line.
struct CardMoment {
  SimTime time{0};
  CardId card = 0;
  Bytes used = 0;  ///< by jobs
  Bytes foreign = 0;
  Bytes promised = 0;
  std::int32_t jobs = 0;
  bool alert = false;                         ///< over 90 % full since a moment ago or longer
  CardStatus status = CardStatus::available;  ///< as the policy has it
};

/// What one job holds of one card from a moment on, for the time line.
struct HoldingMoment {
  SimTime time{0};
  JobId job = 0;
  CardId card = 0;
  Bytes used = 0;
};

/// All cards together. Bytes are sums over all cards.
struct ClusterSums {
  Bytes used = 0;  ///< by jobs
  Bytes foreign = 0;
  Bytes promised = 0;
  std::int64_t cards_alerted = 0;  ///< cards over 90 % full; until they are below 85 %

  friend bool operator==(const ClusterSums&, const ClusterSums&) = default;
};

/// The queue and all cards, from one moment to the next.
struct QueueMoment : ClusterSums {
  SimTime time{0};
  std::int64_t active = 0;   ///< jobs that hold a promise
  std::int64_t pending = 0;  ///< jobs that wait
  Bytes pending_bytes = 0;   ///< what waiting jobs ask for, on the largest cards they may use

  friend bool operator==(const QueueMoment&, const QueueMoment&) = default;
};

/// What became of the cards of a run.
struct ClusterRecord {
  Bytes capacity = 0;            ///< of all cards
  std::int64_t overcommits = 0;  ///< admissions that left a card with more promised than it has
  std::int64_t alerts = 0;       ///< times a card became more than 90 % full after having been below 85 %
  double byte_seconds = 0;       ///< memory in use times seconds
  std::vector<CardMoment> moments;
  std::vector<HoldingMoment> holdings;  ///< one a change, where moments are kept
};

/// What a job's process has on one card: in live blocks, and in all with its context.
struct Holding {
  Bytes allocated = 0;
  Bytes reserved = 0;
};

/// Keeps a card's view, and the index made from it, in step with what happens.
class ClusterBooks {
 public:
  ClusterBooks(const ClusterSetup& setup, const Admitter& policy, bool keep_moments);

  /// A job was admitted, or its promise is taken back.
  void promise(const std::vector<CardId>& cards, Bytes need, std::uint32_t account, SimTime now);
  void withdraw(const std::vector<CardId>& cards, Bytes need, std::uint32_t account, SimTime now);

  /// `job`, with the promise `need` on each card, takes `use` bytes there; all of it or, if some card has too
  /// little left, nothing.
  bool take(JobId job, const std::vector<CardId>& cards, Bytes need, Bytes use, SimTime now);
  void give(JobId job, const std::vector<CardId>& cards, Bytes need, Bytes use, SimTime now);

  /// `job`, with the promise `need` on `card`, had `before` there and has `after`, which the card can give.
  void hold(JobId job, CardId card, Bytes need, const Holding& before, const Holding& after, SimTime now);

  /// Strangers now want this much more or less of a card; what is not free they get as soon as it is.
  void stranger(CardId card, std::int64_t change, SimTime now);

  /// True if these are cards of one node, at least one.
  [[nodiscard]] bool of_one_node(const std::vector<CardId>& cards) const;

  [[nodiscard]] const std::vector<CardView>& cards() const { return cards_; }
  [[nodiscard]] const std::vector<QuotaView>& accounts() const { return accounts_; }
  [[nodiscard]] CardIndex& index() { return index_; }
  [[nodiscard]] const CardIndex& index() const { return index_; }
  [[nodiscard]] const ClusterSums& sums() const { return sums_; }
  /// Of the run up to `now`, its end.
  [[nodiscard]] ClusterRecord take_record(SimTime now);

 private:
  void changed(CardId card, SimTime now);
  void shift_promise(const std::vector<CardId>& cards, Bytes need, int jobs, std::uint32_t account,
                     SimTime now);
  void count_use(SimTime now);

  const Admitter& policy_;
  std::vector<CardView> cards_;
  std::vector<Bytes> wanted_;  ///< by strangers, of each card
  std::vector<bool> alerted_;
  std::vector<QuotaView> accounts_;
  CardIndex index_;
  ClusterSums sums_;
  bool keep_moments_;
  ClusterRecord record_;
  SimTime counted_to_{0};  ///< the byte seconds of the record
};

/// Watches a run of the job queue: who was on which cards when, and the queue as a whole over time. Does
/// nothing unless it is told to keep what it sees.
class QueueMonitor {
 public:
  QueueMonitor(bool keep, std::size_t jobs) : keep_(keep), current_(keep ? jobs : 0) {}

  void admitted(JobId job, const std::vector<CardId>& cards, Bytes need, SimTime now);
  void uses(JobId job, Bytes used);
  void left(JobId job, bool ran_out, SimTime now);

  /// Everything else of this event is done.
  void look(const ClusterBooks& books, const WaitingJobs& waiting, std::int64_t active, SimTime now);

  [[nodiscard]] std::vector<JobStay> take_stays() { return std::move(stays_); }
  [[nodiscard]] std::vector<QueueMoment> take_moments() { return std::move(moments_); }

 private:
  bool keep_;
  std::vector<std::size_t> current_;  ///< number of each job's last stay
  std::vector<JobStay> stays_;
  std::vector<QueueMoment> moments_;
};

}  // namespace vramlab
