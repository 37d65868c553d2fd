// The host's side of a queue policy: keeps the books of jobs that share cards, asks the policy, checks what
// it answers. The same code runs in simulated queues and in real programs; it touches no device, clock or
// file itself.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/contract/admitter.hpp"

namespace vramlab {

/// The cards that a queue shares out. A card's total is what its driver leaves of it (K4-10).
struct ClusterSetup {
  std::vector<CardPool> pools;
  std::vector<CardNode> nodes;
  std::vector<std::optional<Bytes>> quotas{std::nullopt};  ///< by account
};

/// What a job's process has on one card: in live blocks, and in all with its context.
struct Holding {
  Bytes allocated = 0;
  Bytes reserved = 0;

  friend bool operator==(const Holding&, const Holding&) = default;
};

/// One job of the queue, as it stands.
struct QueuedJob {
  enum class State : std::uint8_t {
    waits,
    runs,     ///< it may take its memory, or has
    refused,  ///< it can never fit
    failed    ///< given up: its wait is over, or it ran out of memory too often
  };
  JobId id = 0;
  std::string name;  ///< for people
  JobDemand demand;  ///< as it stands now
  State state = State::waits;
  SimTime submitted{0};
  SimTime since{0};                  ///< it waits or runs
  SimTime expected{SimTime::max()};  ///< how long it says it runs; max = it does not say
  SimTime patience{0};  ///< it waits no longer, whatever the policy says; 0 = no limit of its own
  std::uint64_t ticket = 0;
  GroupId group = 0;          ///< of all jobs with its demand
  bool reconsidered = false;  ///< its demand changed since it began to wait
  bool asked = false;         ///< the policy was asked after QueueRules::wait_timeout, and lets it wait on
  std::int32_t attempts = 0;  ///< that ended for lack of memory
  // Of a job that runs:
  std::vector<CardId> cards;
  Bytes need = 0;             ///< promised on each card
  Bytes used = 0;             ///< on each card, as its process says; 0 = it says nothing
  std::vector<Holding> held;  ///< by card of `cards`: what is counted there
  BatchSplit split;           ///< how it is to run
  std::string reason;         ///< of the last answer about it; may be empty
};

/// What a session keeps, to go on from in another process.
struct QueueBooks {
  std::vector<QueuedJob> jobs;  ///< by rising id
  std::vector<Bytes> foreign;   ///< held by strangers, by card
  JobId next_id = 0;
  std::uint64_t next_ticket = 0;
};

/// What a session asks of its host, and tells it while it works. The defaults are those of a host that says
/// all of a job when it submits it.
class QueueHost {
 public:
  virtual ~QueueHost() = default;

  /// How long `job` says it runs from where it stands, as its variant number `variant` (0 = as it is); max =
  /// it does not say.
  [[nodiscard]] virtual SimTime expected(const QueuedJob& job, std::size_t /*variant*/) const {
    return job.expected;
  }

  /// Changes `demand`, with which `job` is to wait now, to what it asks for where it stands. False if that is
  /// what it asks for.
  [[nodiscard]] virtual bool asks_otherwise(const QueuedJob& /*job*/, JobDemand& /*demand*/) const {
    return false;
  }

  /// `job` has got its promise or, where it is not `given`, has lost it. The cards say so already.
  virtual void promise_changed(const QueuedJob& /*job*/, bool /*given*/) {}
};

/// How the policy answered about a job that has waited as long as the policy's rules say.
enum class WaitEnd : std::uint8_t {
  waits_on,
  asks_anew,  ///< in its place, with another demand; it is to be looked at again
  over        ///< it runs, was refused or has failed
};

/// One admitter at work on shared cards. Times are those of one clock of the host, from anywhere.
///
/// A host that has nothing else to do in a moment calls `examine`. One that acts on every decision at once
/// goes step by step: `begin_look`, then `look` until nothing more starts, and `end_wait` for each job whose
/// wait is over.
class AdmitterSession {
 public:
  /// `cards`: what each offers to jobs, in bytes. Neighbours of equal size count as cards of one kind, among
  /// which a job with several cards is placed. Throws InputError for no card and an empty one.
  AdmitterSession(std::unique_ptr<Admitter> policy, const std::vector<Bytes>& cards);

  /// On the cards of `cluster`, with a host of its own. Both references must outlive the session.
  AdmitterSession(Admitter& policy, const ClusterSetup& cluster, QueueHost& host);
  AdmitterSession(const AdmitterSession&) = delete;
  AdmitterSession& operator=(const AdmitterSession&) = delete;

  /// Goes on from `books`. Throws InputError for books that are not of these cards, or do not add up.
  void restore(QueueBooks books);
  [[nodiscard]] QueueBooks books() const;

  /// A new job waits, or is refused. Of `job` name, demand, expected time and patience count. Throws
  /// InputError for a demand out of range.
  JobId submit(QueuedJob job, SimTime now);

  /// The same under the host's own number for it, which no other job has had, for a demand that it checked.
  const QueuedJob& submit_as(JobId id, QueuedJob job, SimTime now);

  /// Starts whatever may start now, and ends waits that are over. Throws PolicyFault.
  void examine(SimTime now);

  // The same step by step; each throws PolicyFault.

  void begin_look();
  /// The job about which the policy decided: it runs, was sent to the back, was refused or has failed. Empty
  /// where nothing more happens in this look.
  std::optional<JobId> look(SimTime now);
  /// The job, which waits, has done so as long as QueueRules::wait_timeout says.
  WaitEnd end_wait(JobId job, SimTime now);

  /// The job's process ran out of memory. It waits again or has failed.
  void out_of_memory(JobId job, SimTime now);

  /// The job, which runs, gives everything back and waits in its old place with `demand`.
  void wait_again(JobId job, JobDemand demand, SimTime now);

  /// The job is over, or its owner is: it leaves the queue, whatever its state.
  void leave(JobId job);

  /// What the job's process really has on each of its cards; and what strangers hold of a card.
  void set_used(JobId job, Bytes bytes);
  void set_foreign(CardId card, Bytes bytes);

  /// What it has on card number `place` of those it got, while it works; reservations go on counting with
  /// what was said of it last.
  void set_holding(JobId job, std::size_t place, const Holding& holding);
  /// What reservations count with from now on (RunningJob::used).
  void set_reserved_for(JobId job, Bytes bytes);

  /// Why a job that waits has not started, as the policy says.
  [[nodiscard]] std::string why_waiting(JobId job);

  /// Throws InputError if there is none.
  [[nodiscard]] const QueuedJob& job(JobId id) const;
  [[nodiscard]] const std::map<JobId, QueuedJob>& jobs() const { return jobs_; }
  [[nodiscard]] const std::vector<CardView>& cards() const { return views_; }
  [[nodiscard]] const CardIndex& index() const { return index_; }
  [[nodiscard]] const WaitingJobs& waiting() const { return waiting_; }
  [[nodiscard]] const Admitter& policy() const { return policy_; }

 private:
  using Action = AdmitterAnswer::Action;
  AdmitterSession(Admitter& policy, const ClusterSetup& cluster, QueueHost* host);
  [[nodiscard]] ClusterView view() { return {views_, accounts_, waiting_, running_, index_}; }
  AdmitterAnswer ask(QueueEvent event, const QueuedJob* job, SimTime now);
  QueuedJob& find(JobId id);
  QueuedJob& running(JobId id, const char* what);
  void wait(const QueuedJob& job);
  void ask_for(QueuedJob& job, JobDemand demand);
  void wait_anew(QueuedJob& job, JobDemand demand, SimTime now);
  void stop_waiting(const QueuedJob& job);
  void stop_running(QueuedJob& job);
  void run(QueuedJob& job, SimTime end);
  void shift_promise(const QueuedJob& job, int jobs);
  bool end_waits(SimTime now);
  bool end_patience(QueuedJob& job, SimTime now);
  void obey(const AdmitterAnswer& answer, SimTime now);
  void start(QueuedJob& job, const AdmitterAnswer& answer, SimTime now);
  void changed(CardId card) { index_.set(card, policy_.available(views_[card])); }

  std::unique_ptr<Admitter> owned_;
  Admitter& policy_;
  QueueRules rules_;
  QueueHost usual_;
  QueueHost& host_;
  CardIndex index_;
  std::vector<CardView> views_;
  std::vector<QuotaView> accounts_;
  WaitingJobs waiting_{[this](const JobDemand& demand) { return policy_.least_need(demand); }};
  RunningJobs running_;
  std::map<JobId, QueuedJob> jobs_;
  JobId next_id_ = 0;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t pass_ = 0;
  std::size_t answers_left_ = 0;  ///< of this look, before it counts as endless
};

}  // namespace vramlab
