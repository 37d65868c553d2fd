// What is kept of the cards of a cluster beside the books of the queue (AdmitterSession): what strangers
// still want, sums over all cards, and who was on which when.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/contract/job_session.hpp"
#include "sim/runs/job.hpp"

namespace vramlab {

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

/// Keeps the cards of a session in step with what happens to their memory, and a record of it.
class ClusterBooks {
 public:
  /// The session must outlive this.
  ClusterBooks(AdmitterSession& session, bool keep_moments);

  /// `job` was admitted or, where it is not `given`, its promise was taken back.
  void promise_changed(const QueuedJob& job, bool given, SimTime now);

  /// `job` takes `use` bytes on each of its cards; all of it or, if some card has too little left, nothing.
  bool take(JobId job, Bytes use, SimTime now);
  /// Gives all that `job` has back.
  void give(JobId job, SimTime now);

  /// What `job` has from now on, on card number `place` of its cards, which that card can give.
  void hold(JobId job, std::size_t place, const Holding& now_held, SimTime now);

  /// Strangers now want this much more or less of a card; what is not free they get as soon as it is.
  void stranger(CardId card, std::int64_t change, SimTime now);

  [[nodiscard]] const std::vector<CardView>& cards() const { return session_.cards(); }
  [[nodiscard]] const CardIndex& index() const { return session_.index(); }
  [[nodiscard]] const QueuedJob& job(JobId job) const { return session_.job(job); }
  [[nodiscard]] const ClusterSums& sums() const { return sums_; }
  /// Of the run up to `now`, its end.
  [[nodiscard]] ClusterRecord take_record(SimTime now);

 private:
  void changed(CardId card, SimTime now);
  void count_use(SimTime now);

  AdmitterSession& session_;
  std::vector<Bytes> wanted_;  ///< by strangers, of each card
  std::vector<bool> alerted_;
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
