// The rules of `job-queue`: its options, what a card can take, and what is kept for the first in the queue.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// What counts as taken on a card.
enum class Accounting : std::uint8_t {
  ledger,    ///< foreign memory, and for each job the larger of its promise and its use
  measured,  ///< what is really taken now; a job that was admitted but has not allocated yet is not seen
  doubled,   ///< the original: allocated + reserved of the jobs, so that memory counts twice; strangers are
             ///< not seen
  nothing    ///< each job is looked at as if it were alone
};

/// Who goes first, and who may pass whom.
enum class QueueOrder : std::uint8_t {
  two_fifos,    ///< the original: high priority, then the rest; a job that does not fit goes to the back
  strict,       ///< nobody passes the first
  best_effort,  ///< whoever fits, first come first served
  backfill      ///< EASY: others may pass the first if they do not delay it
};

/// Where the margin is kept.
enum class KeptMargin : std::uint8_t {
  beside_jobs,  ///< by needs in bytes on cards that have a job: an empty card gives all it has, and shares of
                ///< a card add up to the card
  always        ///< the original: need and margin have to be free
};

enum class Degrade : std::uint8_t { never, wait_first, degrade_first };
enum class SplitRule : std::uint8_t { exact, floor };
enum class OnOom : std::uint8_t { fail, requeue, smaller };

/// Times in seconds, 0 = off; memory in MiB (the original's "MB").
struct QueueOptions {
  QueueOrder order = QueueOrder::backfill;
  FitRule placement = FitRule::best;
  Accounting accounting = Accounting::ledger;
  std::int64_t safety_margin_mb = 1000;
  KeptMargin keep_margin = KeptMargin::beside_jobs;
  std::int64_t max_concurrent_jobs = 0;
  bool use_gpu = true;
  std::int64_t gpu_device = -1;
  double wait_timeout_s = 0;
  double poll_s = 0;
  Degrade degrade = Degrade::never;
  SplitRule accumulation = SplitRule::exact;
  OnOom on_oom = OnOom::requeue;
  std::int64_t oom_retries = 3;
  double oom_raise = 1.5;
  double job_timeout_s = 0;
  double lease_s = 60;
  double ageing_s = 0;
  std::int64_t backfill_depth = 100;
  bool per_phase = false;
  bool enforce_promise = false;

  [[nodiscard]] Bytes margin() const { return static_cast<Bytes>(safety_margin_mb) * 1_MiB; }

  /// A wait after which a job is looked at once more: it then fails or, with `wait-first`, may shrink.
  /// 0 = never. Without a limit `wait-first` waits as long as the original does.
  [[nodiscard]] double patience_s() const {
    constexpr double kPublished = 300;
    return wait_timeout_s > 0 || degrade != Degrade::wait_first ? wait_timeout_s : kPublished;
  }

  /// Whether a job with this demand may be given a smaller batch now.
  [[nodiscard]] bool may_shrink(const JobDemand& demand) const {
    const bool now = degrade == Degrade::degrade_first || (degrade == Degrade::wait_first && demand.overdue);
    return now && demand.shrinks();
  }
};

const OptionTable<QueueOptions>& queue_option_table();
std::vector<PolicyProfile> queue_profiles();

/// Bytes taken on `card` by the accounting chosen; may exceed the card's total.
Bytes taken_bytes(const QueueOptions& options, const CardView& card);

/// Bytes that are not taken; empty if the card takes no further job, whatever it needs.
std::optional<Bytes> free_bytes(const QueueOptions& options, const CardView& card);

/// Bytes that are to stay free of `card` beside a job with this demand.
Bytes margin_on(const QueueOptions& options, const CardView& card, const JobDemand& demand);

/// Whether `card`, which is number `id`, can take `need` bytes for a job with this demand, and the margin.
bool can_take(const QueueOptions& options, CardId id, const CardView& card, const JobDemand& demand,
              Bytes need);

/// Whether the demand could ever fit a card of the cluster that is otherwise empty, at its smallest batch
/// where the policy may shrink it. `never` then holds both figures in words.
std::optional<std::string> never_fits(const QueueOptions& options, const JobDemand& demand,
                                      const ClusterView& cluster);

/// Why `demand` does not start now, with the figures: what it needs, and what the freest card offers.
std::string why_it_waits(const QueueOptions& options, const JobDemand& demand, const ClusterView& cluster);

// When and where the first of the queue can start at the latest: EASY backfill's reservation.

/// Cards set aside for a job from `at` on.
struct Reservation {
  SimTime at{0};
  std::vector<CardId> cards;
  std::vector<Bytes> spare;  ///< of each card, beyond what the job and its margin will need then

  /// Bytes of `card` that another job may still hold at `at` without delaying the job.
  [[nodiscard]] Bytes most_on(CardId card) const;
};

/// What jobs may need on the cards they ask for, at most, so that these could take them now: by bytes, their
/// margin aside, and beside what is kept for another job. Each kind of cards is looked at once.
class Room {
 public:
  /// `kept` = null: everything may be taken.
  Room(const QueueOptions& options, const ClusterView& cluster, const Reservation* kept)
      : options_(options), cluster_(cluster), kept_(kept) {}

  Bytes operator()(const CardsAsked& asked);

 private:
  const QueueOptions& options_;
  const ClusterView& cluster_;
  const Reservation* kept_;
  std::vector<std::pair<CardsAsked, Bytes>> known_;
};

/// Finds reservations from the expected ends of running jobs. Remembers for the group asked for last what it
/// found on every node, until that node changes.
class EarliestStart {
 public:
  /// The earliest reservation for one job of `group` at its full batch; ties go to the lower node. Empty if
  /// no node is expected ever to have room.
  std::optional<Reservation> find(const QueueOptions& options, const ClusterView& cluster, GroupId group,
                                  SimTime now);

 private:
  struct Known {
    std::uint64_t version = ~std::uint64_t{0};
    SimTime at{SimTime::max()};
  };
  std::optional<GroupId> group_;
  std::vector<Known> known_;  ///< by node
};

}  // namespace vramlab
