// When and where the first of the queue can start at the latest: EASY backfill's reservation.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "policies/admitter.hpp"

namespace vramlab {

/// Cards set aside for a job from `at` on.
struct Reservation {
  SimTime at{0};
  std::vector<CardId> cards;
  std::vector<Bytes> spare;  ///< of each card, beyond what the job will need then

  /// Whether a job that needs `need` bytes on `card`, and may still hold them at `at`, delays the job.
  [[nodiscard]] bool allows(CardId card, Bytes need) const;
};

/// Finds reservations from the expected ends of running jobs. Remembers for every group and node what it
/// found, until that node changes.
class EarliestStart {
 public:
  /// The earliest reservation for one job of `group` at its full batch; ties go to the lower node. Empty if
  /// no node is expected ever to have room.
  std::optional<Reservation> find(const Admitter& policy, const ClusterView& cluster, GroupId group,
                                  SimTime now);

 private:
  struct Known {
    std::uint64_t version = ~std::uint64_t{0};
    SimTime at{SimTime::max()};
  };
  std::map<GroupId, std::vector<Known>> known_;
};

}  // namespace vramlab
