#include "policies/admitters/queue_rules.hpp"

#include <algorithm>

namespace vramlab {
namespace {

constexpr double kLongest = 1e9;  // seconds, some 30 years

}  // namespace

const OptionTable<QueueOptions>& queue_option_table() {
  using O = QueueOptions;
  static const OptionTable<O> rows{
      .owner = "job-queue",
      .options = {
          {"order", one_of<&O::order>({"two-fifos", "strict", "best-effort", "backfill"}), "", 0, 0,
           "who goes first, and who may pass whom"},
          {"placement", one_of<&O::placement>({"first", "best", "worst", "fragments"}), "", 0, 0,
           "which card is taken where several fit"},
          {"accounting", one_of<&O::accounting>({"ledger", "measured", "doubled", "nothing"}), "", 0, 0,
           "what counts as taken: promises kept in a ledger, memory as read from the card, the original's "
           "allocated + reserved, or nothing"},
          {"safety_margin_mb", &O::safety_margin_mb, "MiB", 0, 1e6, "kept free on every card"},
          {"max_concurrent_jobs", &O::max_concurrent_jobs, "jobs a card", 0, 1e6,
           "at most this many jobs on one card; 0 = as many as fit"},
          {"wait_timeout_s", &O::wait_timeout_s, "s", 0, kLongest,
           "a job that has waited this long fails; one that can start in that moment does; 0 = never"},
          {"poll_s", &O::poll_s, "s", 0, kLongest,
           "look for free memory only that often; 0 = whenever some is released"},
          {"degrade", one_of<&O::degrade>({"never", "wait-first", "degrade-first"}), "", 0, 0,
           "halve the batch of a job that does not fit: not at all, when its wait is over, or at once"},
          {"accumulation", one_of<&O::accumulation>({"exact", "floor"}), "", 0, 0,
           "a smaller batch keeps the effective batch exactly, or original // new as the original did"},
          {"on_oom", one_of<&O::on_oom>({"fail", "requeue", "smaller"}), "", 0, 0,
           "a job that ran out of memory fails, waits again with a raised need, or with a halved batch"},
          {"oom_retries", &O::oom_retries, "attempts", 0, 1000, "further attempts after a job's first OOM"},
          {"oom_raise", &O::oom_raise, "factor", 1, 100, "multiplies the need of a job that waits again"},
          {"job_timeout_s", &O::job_timeout_s, "s", 0, kLongest,
           "a job is ended this long after it was submitted; 0 = never"},
          {"lease_s", &O::lease_s, "s", 0, kLongest,
           "a promise outlives a dead owner by this much; 0 = for ever"},
          {"ageing_s", &O::ageing_s, "s", 0, kLongest,
           "each such span of waiting counts as one priority; 0 = off"},
          {"backfill_depth", &O::backfill_depth, "jobs", 1, 1e6,
           "of jobs that ask for the same, this many are looked at for a short one"},
          {"per_phase", &O::per_phase, "", 0, 0, "a job asks for memory anew at each of its phases"},
      }};
  return rows;
}

std::vector<PolicyProfile> queue_profiles() {
  return {
      {"faithful",
       "the original with its defects: cached memory counted twice, ledger ignored, polling, waiting before "
       "degrading, effective batch lost",
       {{"order", "two-fifos"},
        {"placement", "first"},
        {"accounting", "doubled"},
        {"max_concurrent_jobs", 2},
        {"poll_s", 5.0},
        {"degrade", "wait-first"},
        {"accumulation", "floor"},
        {"on_oom", "smaller"},
        {"oom_retries", 1},
        {"job_timeout_s", 3600.0},
        {"lease_s", 0.0}}},
      {"strict-fifo", "reserves, and nobody passes the first in the queue", {{"order", "strict"}}},
      {"best-effort", "reserves, and whoever fits may start", {{"order", "best-effort"}}},
      {"backfill", "reserves, and others may pass the first only where that does not delay it"},
      {"free-memory",
       "reads free memory and starts, without a ledger: check, then allocate",
       {{"order", "best-effort"}, {"accounting", "measured"}}},
      {"exclusive", "one job a card", {{"order", "strict"}, {"max_concurrent_jobs", 1}}},
      {"no-admission",
       "starts every job at once",
       {{"order", "best-effort"}, {"placement", "worst"}, {"accounting", "nothing"}}},
  };
}

namespace {

std::string per_card(Bytes need, std::int32_t cards) {
  return cards == 1 ? format_bytes(need)
                    : format_bytes(need) + " on each of " + std::to_string(cards) + " cards";
}

}  // namespace

std::optional<std::string> never_fits(const QueueOptions& options, const JobDemand& demand,
                                      const ClusterView& cluster) {
  const std::int64_t batch = options.degrade == Degrade::never ? demand.batch : 1;
  const Bytes margin = options.margin();
  Bytes largest = 0;  // offered by a card that may be used
  Bytes least = 0;    // asked of it
  Bytes before = ~Bytes{0};
  const auto pools = cluster.index.pools();
  for (const CardNode& node : cluster.index.nodes()) {
    const bool allowed = (demand.pools >> node.pool & 1) != 0;
    if (!allowed || node.count < static_cast<std::uint32_t>(demand.cards)) continue;
    const Bytes total = pools[node.pool].total;
    if (total == before) continue;  // nodes of a kind lie together
    before = total;
    const Bytes need = demand.need(batch, total);
    const bool fits = need + margin <= total;
    if (fits || total > largest) {
      largest = total;
      least = need;
    }
    if (fits) break;
  }
  if (largest == 0) {
    return "Asks for " + std::to_string(demand.cards) + " card" + (demand.cards == 1 ? "" : "s") +
           " of one node, which no node it may use has.";
  }
  const std::optional<Bytes> quota = cluster.accounts[demand.account].quota;
  const Bytes sum = least * static_cast<Bytes>(demand.cards);
  if (quota && sum > *quota) {
    return "Asks for " + format_bytes(sum) + " in all, above its quota of " + format_bytes(*quota) + ".";
  }
  if (least + margin <= largest) return std::nullopt;
  return "Needs " + per_card(least, demand.cards) + (batch < demand.batch ? " even at batch 1" : "") +
         "; the largest card offers " + format_bytes(largest) +
         (margin > 0 ? " less a margin of " + format_bytes(margin) : "") + ": it can never fit.";
}

std::string why_it_waits(const JobDemand& demand, const ClusterView& cluster) {
  Bytes most = 0;
  std::optional<CardId> freest;
  for (CardId card = 0; card < cluster.cards.size(); ++card) {
    const std::uint32_t pool = cluster.index.nodes()[cluster.index.node_of(card)].pool;
    if ((demand.pools >> pool & 1) == 0) continue;
    const auto available = cluster.index.available(card);
    if (!available || (freest && *available <= most)) continue;
    most = *available;
    freest = card;
  }
  const Bytes total = freest ? cluster.cards[*freest].total : cluster.index.largest_total(demand);
  const std::string needs = "needs " + per_card(demand.need(demand.batch, total), demand.cards);
  if (!freest) return needs + "; every card has as many jobs as it may";
  return needs + "; the freest card, " + std::to_string(*freest) + ", has " + format_bytes(most) + " of " +
         format_bytes(total) + " to give";
}

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
