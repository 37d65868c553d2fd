#include "policies/queue_reservation.hpp"

#include <algorithm>

namespace vramlab {
namespace {

Bytes less(Bytes from, Bytes amount) { return from > amount ? from - amount : 0; }

void take_out(const RunningJob& job, CardView& card) {
  card.promised = less(card.promised, job.promised);
  card.held = less(card.held, std::max(job.promised, job.used));
  card.allocated = less(card.allocated, job.used);
  card.reserved = less(card.reserved, job.used);
  --card.jobs;
}

/// The cards of one node as they will be while its jobs end one after another.
class NodeFuture {
 public:
  NodeFuture(const Admitter& policy, const ClusterView& cluster, NodeId node)
      : policy_(policy), node_(cluster.index.nodes()[node]), running_(cluster.running.on(node)) {
    cards_.assign(cluster.cards.begin() + node_.first, cluster.cards.begin() + node_.first + node_.count);
  }

  // The first moment at which `wanted` cards offer `need`; max if that never comes.
  SimTime first_time(Bytes need, std::size_t wanted) {
    if (room(need) >= wanted) return SimTime{0};
    for (const RunningJob& job : running_) {
      if (job.expected_end == SimTime::max()) break;
      for (const CardId card : job.cards) take_out(job, cards_[card - node_.first]);
      if (room(need) >= wanted) return job.expected_end;
    }
    return SimTime::max();
  }

  [[nodiscard]] Reservation reserve(Bytes need, std::size_t wanted) const {
    Reservation reservation;
    for (std::uint32_t i = 0; i < cards_.size() && reservation.cards.size() < wanted; ++i) {
      const auto available = policy_.available(cards_[i]);
      if (!available || *available < need) continue;
      reservation.cards.push_back(node_.first + i);
      reservation.spare.push_back(*available - need);
    }
    return reservation;
  }

 private:
  [[nodiscard]] std::size_t room(Bytes need) const {
    std::size_t count = 0;
    for (const CardView& card : cards_) {
      const auto available = policy_.available(card);
      count += available && *available >= need ? 1 : 0;
    }
    return count;
  }

  const Admitter& policy_;
  CardNode node_;
  const std::vector<RunningJob>& running_;
  std::vector<CardView> cards_;
};

}  // namespace

bool Reservation::allows(CardId card, Bytes need) const {
  const auto found = std::find(cards.begin(), cards.end(), card);
  return found == cards.end() || need <= spare[static_cast<std::size_t>(found - cards.begin())];
}

std::optional<Reservation> EarliestStart::find(const Admitter& policy, const ClusterView& cluster,
                                               GroupId group, SimTime now) {
  const JobDemand& demand = cluster.waiting.demand(group);
  const auto nodes = cluster.index.nodes();
  const auto pools = cluster.index.pools();
  const auto wanted = static_cast<std::size_t>(demand.cards);
  std::vector<Known>& known = known_[group];
  known.resize(nodes.size());
  std::optional<NodeId> best;
  SimTime at = SimTime::max();
  for (NodeId node = 0; node < nodes.size(); ++node) {
    if ((demand.pools >> nodes[node].pool & 1) == 0 || nodes[node].count < wanted) continue;
    if (known[node].version != cluster.running.version(node)) {
      const Bytes need = demand.need(demand.batch, pools[nodes[node].pool].total);
      known[node] = {cluster.running.version(node),
                     NodeFuture{policy, cluster, node}.first_time(need, wanted)};
    }
    if (known[node].at == SimTime::max()) continue;
    const SimTime then =
        std::max(known[node].at, now);  // a job that runs longer than it said may end any time
    if (then < at) {
      at = then;
      best = node;
    }
  }
  if (!best) return std::nullopt;
  const Bytes need = demand.need(demand.batch, pools[nodes[*best].pool].total);
  NodeFuture future{policy, cluster, *best};
  future.first_time(need, wanted);
  Reservation reservation = future.reserve(need, wanted);
  reservation.at = at;
  return reservation;
}

}  // namespace vramlab
