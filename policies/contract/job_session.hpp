// The host's side of a queue policy in real programs: jobs of several processes share the cards of one
// machine. Keeps the books, asks the policy, checks what it answers; it touches no device, clock or file
// itself.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/contract/admitter.hpp"

namespace vramlab {

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
  bool reconsidered = false;  ///< its demand changed since it began to wait
  bool asked = false;         ///< the policy was asked after QueueRules::wait_timeout, and lets it wait on
  std::int32_t attempts = 0;  ///< that ended for lack of memory
  // Of a job that runs:
  std::vector<CardId> cards;
  Bytes need = 0;      ///< promised on each card
  Bytes used = 0;      ///< on each card, as its process says; 0 = it says nothing
  BatchSplit split;    ///< how it is to run
  std::string reason;  ///< of the last answer about it; may be empty
};

/// What a session keeps, to go on from in another process.
struct QueueBooks {
  std::vector<QueuedJob> jobs;  ///< by rising id
  std::vector<Bytes> foreign;   ///< held by strangers, by card
  JobId next_id = 0;
  std::uint64_t next_ticket = 0;
};

/// One admitter at work on the cards of one machine. Times are those of one clock of the host, from anywhere.
class AdmitterSession {
 public:
  /// `cards`: what each offers to jobs, in bytes. Neighbours of equal size count as cards of one kind, among
  /// which a job with several cards is placed. Throws InputError for no card, an empty one, or a policy that
  /// asks again at each phase.
  AdmitterSession(std::unique_ptr<Admitter> policy, const std::vector<Bytes>& cards);

  /// Goes on from `books`. Throws InputError for books that are not of these cards, or do not add up.
  void restore(QueueBooks books);
  [[nodiscard]] QueueBooks books() const;

  /// A new job waits, or is refused. Of `job` name, demand, expected time and patience count. Throws
  /// InputError for a demand out of range.
  JobId submit(QueuedJob job, SimTime now);

  /// Starts whatever may start now, and ends waits that are over. Throws PolicyFault.
  void examine(SimTime now);

  /// The job's process ran out of memory. It waits again or has failed.
  void out_of_memory(JobId job, SimTime now);

  /// The job is over, or its owner is: it leaves the queue, whatever its state.
  void leave(JobId job);

  /// What the job's process really has on each of its cards; and what strangers hold of a card.
  void set_used(JobId job, Bytes bytes);
  void set_foreign(CardId card, Bytes bytes);

  /// Throws InputError if there is none.
  [[nodiscard]] const QueuedJob& job(JobId id) const;
  [[nodiscard]] const std::map<JobId, QueuedJob>& jobs() const { return jobs_; }
  [[nodiscard]] const std::vector<CardView>& cards() const { return views_; }
  [[nodiscard]] const Admitter& policy() const { return *policy_; }

 private:
  using Action = AdmitterAnswer::Action;
  AdmitterAnswer ask(QueueEvent event, const QueuedJob* job, SimTime now);
  QueuedJob& find(JobId id);
  QueuedJob& running(JobId id, const char* what);
  void wait(QueuedJob& job);
  void stop_waiting(const QueuedJob& job);
  void stop_running(QueuedJob& job);
  void run_pass(SimTime now);
  bool end_waits(SimTime now);
  bool end_wait(QueuedJob& job, SimTime now);
  void obey(const AdmitterAnswer& answer, SimTime now);
  void start(QueuedJob& job, const AdmitterAnswer& answer, SimTime now);
  void refresh();

  std::unique_ptr<Admitter> policy_;
  QueueRules rules_;
  CardIndex index_;
  std::vector<CardView> views_;
  std::vector<Bytes> foreign_;
  std::vector<QuotaView> accounts_{QuotaView{}};
  WaitingJobs waiting_;
  RunningJobs running_;
  std::map<JobId, QueuedJob> jobs_;
  JobId next_id_ = 0;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t pass_ = 0;
};

}  // namespace vramlab
