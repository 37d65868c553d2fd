// The admitter family: which waiting job may start, where, and how large; what becomes of one that ran out
// of time or memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policies/contract/cards.hpp"
#include "policies/contract/policy.hpp"

namespace vramlab {

/// What may be known about one card, in bytes.
struct CardView {
  Bytes total = 0;      ///< the card's memory less what its driver keeps
  Bytes allocated = 0;  ///< in live blocks of the jobs' processes
  Bytes reserved = 0;   ///< what those processes hold, their contexts included
  Bytes foreign = 0;    ///< held by processes that no job of the queue started
  Bytes promised = 0;   ///< the ledger: declared needs of the admitted jobs
  Bytes held = 0;       ///< the sum, over its jobs, of the larger of promise and use
  std::int32_t jobs = 0;
};

/// A quota of bytes over all cards, and how much of it is promised.
struct QuotaView {
  std::optional<Bytes> quota;  ///< empty = none
  Bytes promised = 0;
};

/// The cluster and its queue. References hold while a question is answered.
struct ClusterView {
  std::span<const CardView> cards;
  std::span<const QuotaView> accounts;
  const WaitingJobs& waiting;
  const RunningJobs& running;
  CardIndex& index;  ///< by what `Admitter::available` says of each card
};

enum class QueueEvent : std::uint8_t {
  submitted,  ///< `job` arrived; answer `wait` or `refuse`
  examine,    ///< who may start? Asked again after every answer but `wait`
  deadline,   ///< `job` has waited as long as rules() say; answer `start`, `fail`, `wait`, or once `requeue`
  oom         ///< `job` ran out of memory; answer `requeue` or `fail`
};

struct AdmitterQuestion {
  QueueEvent event = QueueEvent::examine;
  std::uint64_t pass = 0;  ///< questions `examine` of one moment share it; memory only shrinks within a pass
  JobId job = 0;           ///< not for `examine`
  GroupId group = 0;       ///< of `job`
  std::int64_t batch = 1;  ///< oom: what the job ran at
  std::int32_t attempts = 0;  ///< oom: attempts of the job that ended so, this one included
  const ClusterView& cluster;
};

struct AdmitterAnswer {
  enum class Action : std::uint8_t {
    wait,     ///< nothing (more) to do now
    start,    ///< start `job` on `cards`
    refuse,   ///< it can never fit
    fail,     ///< give it up
    requeue,  ///< it waits again, or goes on waiting, with `demand`
    to_back   ///< it draws a new ticket
  };
  Action action = Action::wait;
  JobId job = 0;
  std::vector<CardId> cards;
  Bytes need = 0;    ///< start: promised on each card
  BatchSplit split;  ///< start: how it is to run
  JobDemand demand;  ///< requeue: what it asks for from now on
  std::string reason;
};

/// What the host must know of a policy to serve it.
struct QueueRules {
  SimTime wait_timeout{0};  ///< a wait after which the policy is asked (QueueEvent::deadline); 0 = never
  SimTime poll{0};          ///< look only that often; 0 = at every release and arrival
  SimTime job_timeout{0};   ///< of the whole job, wait included; 0 = none
  SimTime lease{0};         ///< how long a promise outlives its owner; 0 = for ever
  bool per_phase = false;   ///< a job asks for memory anew at each phase
  FitRule placement = FitRule::first;
  bool enforces_promise = false;  ///< a job's processes can reserve no more than it was promised
};

/// What a queue says of a card, as the published one does.
enum class CardStatus : std::uint8_t {
  available,
  busy,          ///< more than 90 % is taken
  out_of_memory  ///< less than the margin is free
};

/// The status of a card of `total` bytes of which `taken` are taken and `margin` are to stay free.
constexpr CardStatus card_status(Bytes total, Bytes taken, Bytes margin) {
  if (taken > total || total - taken < margin) return CardStatus::out_of_memory;
  return taken * 10 > total * 9 ? CardStatus::busy : CardStatus::available;
}

/// A policy that admits jobs to cards.
class Admitter : public Decider<AdmitterQuestion, AdmitterAnswer> {
 public:
  static constexpr const char* kFamily = "queue policy";  ///< as users are told of it

  [[nodiscard]] virtual QueueRules rules() const = 0;

  /// What `card` has to give by this policy's reckoning, its margin aside; empty if it takes no further job.
  [[nodiscard]] virtual std::optional<Bytes> available(const CardView& card) const = 0;

  /// Bytes without which no card can take a job with this demand; 0 = it does not say. Groups of jobs that
  /// need more than any card has are passed over by WaitingJobs::next.
  [[nodiscard]] virtual Bytes least_need(const JobDemand& /*demand*/) const { return 0; }

  /// What it says of `card`. Unless a policy knows better: by the memory really taken, without a margin.
  [[nodiscard]] virtual CardStatus status(const CardView& card) const {
    return card_status(card.total, card.reserved + card.foreign, 0);
  }

  /// Why the jobs of `group`, which wait, have not started, with the bytes that decide; empty if it does not
  /// say.
  [[nodiscard]] virtual std::string why_waiting(GroupId /*group*/, const ClusterView& /*cluster*/) const {
    return {};
  }
};

}  // namespace vramlab
