// `job-queue`: several jobs share cards. Admission, order, degradation and recovery by options (P3).
#pragma once

#include <optional>
#include <vector>

#include "policies/admitters/queue_rules.hpp"
#include "policies/contract/admitter.hpp"

namespace vramlab {

/// How many needs seen so far are above a size: what memory left over is useless for.
class SeenNeeds {
 public:
  void add(Bytes need);
  /// Memory, in MiB times needs seen, that `need` of `available` bytes makes useless or useful again.
  [[nodiscard]] std::int64_t cost(Bytes available, Bytes need) const;

 private:
  [[nodiscard]] std::int64_t useless(Bytes free) const;
  std::vector<std::pair<Bytes, std::int64_t>> counts_;  ///< by need
};

class JobQueue final : public Admitter {
 public:
  explicit JobQueue(const QueueOptions& options) : options_(options) {}

  AdmitterAnswer decide(const AdmitterQuestion& question, const Observation& observation) override;
  [[nodiscard]] QueueRules rules() const override;
  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override;

 private:
  /// A group at its first job; higher priority first, then the lower ticket.
  struct Turn {
    std::int64_t priority = 0;
    std::uint64_t ticket = 0;
    GroupId group = 0;
    friend bool operator<(const Turn& a, const Turn& b) {  // for a heap whose front goes first
      return a.priority != b.priority ? a.priority < b.priority : a.ticket > b.ticket;
    }
  };

  AdmitterAnswer submitted(const AdmitterQuestion& question);
  AdmitterAnswer examine(const AdmitterQuestion& question, SimTime now);
  AdmitterAnswer deadline(const AdmitterQuestion& question);
  AdmitterAnswer after_oom(const AdmitterQuestion& question) const;

  void begin_pass(const AdmitterQuestion& question, SimTime now);
  [[nodiscard]] Turn turn_of(const ClusterView& cluster, GroupId group, const WaitingJob& first,
                             SimTime now) const;
  void come_again(const ClusterView& cluster, GroupId group, JobId starting, SimTime now);
  [[nodiscard]] std::optional<AdmitterAnswer> place(const ClusterView& cluster, GroupId group, bool degrade,
                                                    const CardIndex::Accept& accept);
  void collect_turned_away(const ClusterView& cluster);
  [[nodiscard]] bool within_quota(const ClusterView& cluster, const JobDemand& demand,
                                  const CardIndex::Place& place) const;
  [[nodiscard]] std::optional<AdmitterAnswer> pass_over(const ClusterView& cluster, GroupId group,
                                                        SimTime now);

  QueueOptions options_;
  SeenNeeds seen_;
  EarliestStart earliest_;
  std::uint64_t pass_ = ~std::uint64_t{0};
  std::vector<Turn> turns_;                 ///< heap of the groups not yet found unfit in this pass
  std::optional<Turn> started_;             ///< in this pass, last (two FIFOs)
  std::vector<JobId> to_back_;              ///< looked at before it and not fitting; last one first
  bool head_waits_ = false;                 ///< the first does not fit: the rest may only pass it
  std::optional<Reservation> reservation_;  ///< of the first
  GroupId head_ = 0;
};

}  // namespace vramlab
