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
          {"safety_margin_mb", &O::safety_margin_mb, "MiB", 0, 1e6,
           "kept free on every card that jobs share"},
          {"keep_margin", one_of<&O::keep_margin>({"beside-jobs", "always"}), "", 0, 0,
           "keep it by needs in bytes on cards that have a job (an empty card gives all it has, and shares "
           "add up to the card), or always, as the original did"},
          {"max_concurrent_jobs", &O::max_concurrent_jobs, "jobs a card", 0, 1e6,
           "at most this many jobs on one card; 0 = as many as fit"},
          {"use_gpu", &O::use_gpu, "", 0, 0, "give jobs cards; without, every one is refused"},
          {"gpu_device", &O::gpu_device, "card", -1, 1e9, "the only card to give, from 0; -1 = all"},
          {"wait_timeout_s", &O::wait_timeout_s, "s", 0, kLongest,
           "a job that has waited this long fails; one that can start in that moment does; 0 = never"},
          {"poll_s", &O::poll_s, "s", 0, kLongest,
           "look for free memory only that often; 0 = whenever some is released"},
          {"degrade", one_of<&O::degrade>({"never", "wait-first", "degrade-first"}), "", 0, 0,
           "halve the batch of a job that does not fit: not at all, once it has waited (wait_timeout_s, or "
           "300 s where that is 0), or at once"},
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
          {"enforce_promise", &O::enforce_promise, "", 0, 0,
           "a job can take no more than it was promised, as if its program had set that limit "
           "(set_per_process_memory_fraction)"},
      }};
  return rows;
}

std::vector<PolicyProfile> queue_profiles() {
  return {
      {"faithful",
       "the original with its defects: cached memory counted twice, ledger ignored, polling, waiting before "
       "degrading, effective batch lost; reads its environment variables",
       {{"order", "two-fifos"},
        {"placement", "first"},
        {"accounting", "doubled"},
        {"keep_margin", "always"},
        {"max_concurrent_jobs", 2},
        {"wait_timeout_s", 300.0},
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

Bytes less(Bytes from, Bytes amount) { return from > amount ? from - amount : 0; }

// How many cards of `node` a job may have.
std::int64_t cards_to_use(const QueueOptions& options, const CardNode& node) {
  if (options.gpu_device < 0) return node.count;
  return options.gpu_device >= node.first && options.gpu_device < std::int64_t{node.first} + node.count;
}

}  // namespace

Bytes taken_bytes(const QueueOptions& options, const CardView& card) {
  switch (options.accounting) {
    case Accounting::ledger:
      return card.held + card.foreign;
    case Accounting::measured:
      return card.reserved + card.foreign;
    case Accounting::doubled:
      return card.allocated + card.reserved;
    case Accounting::nothing:
      break;
  }
  return 0;
}

std::optional<Bytes> free_bytes(const QueueOptions& options, const CardView& card) {
  if (options.max_concurrent_jobs > 0 && card.jobs >= options.max_concurrent_jobs) return std::nullopt;
  return less(card.total, taken_bytes(options, card));
}

Bytes margin_on(const QueueOptions& options, const CardView& card, const JobDemand& demand) {
  if (options.keep_margin == KeptMargin::always) return options.margin();
  const bool alone = card.jobs == 0 || options.accounting == Accounting::nothing;
  return alone || demand.share_milli > 0 ? 0 : options.margin();
}

bool can_take(const QueueOptions& options, CardId id, const CardView& card, const JobDemand& demand,
              Bytes need) {
  if (options.gpu_device >= 0 && options.gpu_device != id) return false;
  const auto free = free_bytes(options, card);
  return free && *free >= need + margin_on(options, card, demand);
}

std::optional<std::string> never_fits(const QueueOptions& options, const JobDemand& demand,
                                      const ClusterView& cluster) {
  if (!options.use_gpu) return "use_gpu is off: no job is given a card.";
  const std::int64_t batch = options.degrade == Degrade::never ? demand.batch : 1;
  const Bytes margin = margin_on(options, {}, demand);
  Bytes largest = 0;  // offered by a card that may be used
  Bytes least = 0;    // asked of it
  Bytes before = ~Bytes{0};
  const auto pools = cluster.index.pools();
  for (const CardNode& node : cluster.index.nodes()) {
    const bool allowed = (demand.pools >> node.pool & 1) != 0;
    if (!allowed || cards_to_use(options, node) < demand.cards) continue;
    const Bytes total = pools[node.pool].total;
    if (total == before) continue;  // nodes of a kind lie together
    before = total;
    Bytes need = demand.need(batch, total);
    for (std::size_t i = 1; options.degrade != Degrade::never && i <= demand.variants.size(); ++i) {
      need = std::min(need, demand.as_variant(i).need(batch, total));
    }
    const bool fits = need + margin <= total;
    if (fits || total > largest) {
      largest = total;
      least = need;
    }
    if (fits) break;
  }
  if (largest == 0) {
    return "Asks for " + std::to_string(demand.cards) + " card" + (demand.cards == 1 ? "" : "s") +
           " of one node, which no node it may use has" +
           (options.gpu_device < 0 ? "." : " (gpu_device is " + std::to_string(options.gpu_device) + ").");
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

std::string why_it_waits(const QueueOptions& options, const JobDemand& demand, const ClusterView& cluster) {
  Bytes most = 0;
  std::optional<CardId> freest;
  for (CardId card = 0; card < cluster.cards.size(); ++card) {
    const std::uint32_t pool = cluster.index.nodes()[cluster.index.node_of(card)].pool;
    const bool barred = options.gpu_device >= 0 && options.gpu_device != card;
    if (barred || (demand.pools >> pool & 1) == 0) continue;
    const auto available = cluster.index.available(card);
    if (!available || (freest && *available <= most)) continue;
    most = *available;
    freest = card;
  }
  const Bytes total = freest ? cluster.cards[*freest].total : cluster.index.largest_total(demand);
  const Bytes need = demand.need(demand.batch, total);
  const QuotaView& account = cluster.accounts[demand.account];
  std::string text = "needs " + per_card(need, demand.cards);
  if (!freest) return text + "; every card has as many jobs as it may";
  const Bytes margin = margin_on(options, cluster.cards[*freest], demand);
  text += "; the freest card, " + std::to_string(*freest) + ", has " + format_bytes(most) + " of " +
          format_bytes(total) + " to give" +
          (margin > 0 ? " less a margin of " + format_bytes(margin) : std::string{});
  if (account.quota && account.promised + need * static_cast<Bytes>(demand.cards) > *account.quota) {
    return text + "; " + format_bytes(account.promised) + " of its quota of " + format_bytes(*account.quota) +
           " are promised";
  }
  return most < need + margin ? text
                              : text + (demand.cards > 1 ? "; it needs several of one node at once"
                                                         : "; its turn has not come");
}

namespace {

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
  NodeFuture(const QueueOptions& options, const ClusterView& cluster, NodeId node, const JobDemand& demand)
      : options_(options),
        demand_(demand),
        node_(cluster.index.nodes()[node]),
        need_(demand.need(demand.batch, cluster.index.pools()[node_.pool].total)),
        running_(cluster.running.on(node)) {
    cards_.assign(cluster.cards.begin() + node_.first, cluster.cards.begin() + node_.first + node_.count);
  }

  // The first moment at which as many cards as the job wants can take it; max if that never comes.
  SimTime first_time() {
    if (has_room()) return SimTime{0};
    for (const RunningJob& job : running_) {
      if (job.expected_end == SimTime::max()) break;
      for (const CardId card : job.cards) take_out(job, cards_[card - node_.first]);
      if (has_room()) return job.expected_end;
    }
    return SimTime::max();
  }

  [[nodiscard]] Reservation reserve() const {
    Reservation reservation;
    for (std::uint32_t i = 0; i < cards_.size() && reservation.cards.size() < wanted(); ++i) {
      if (!takes(i)) continue;
      reservation.cards.push_back(node_.first + i);
      CardView shared = cards_[i];  // with who passes the job it is, and then the job keeps its margin there
      ++shared.jobs;
      const Bytes taken = need_ + margin_on(options_, shared, demand_);
      reservation.spare.push_back(less(*free_bytes(options_, cards_[i]), taken));
    }
    return reservation;
  }

 private:
  [[nodiscard]] std::size_t wanted() const { return static_cast<std::size_t>(demand_.cards); }
  [[nodiscard]] bool takes(std::uint32_t i) const {
    return can_take(options_, node_.first + i, cards_[i], demand_, need_);
  }
  [[nodiscard]] bool has_room() const {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < cards_.size(); ++i) count += takes(i) ? 1 : 0;
    return count >= wanted();
  }

  const QueueOptions& options_;
  const JobDemand& demand_;
  CardNode node_;
  Bytes need_;  ///< on each card
  const std::vector<RunningJob>& running_;
  std::vector<CardView> cards_;
};

}  // namespace

Bytes Reservation::most_on(CardId card) const {
  const auto found = std::find(cards.begin(), cards.end(), card);
  return found == cards.end() ? ~Bytes{0} : spare[static_cast<std::size_t>(found - cards.begin())];
}

Bytes Room::operator()(const CardsAsked& asked) {
  const auto known = std::ranges::find(known_, asked, &std::pair<CardsAsked, Bytes>::first);
  if (known != known_.end()) return known->second;
  const JobDemand in_bytes;
  const Bytes most = cluster_.index.most_given(asked, [&](CardId card, Bytes available) {
    if (options_.gpu_device >= 0 && options_.gpu_device != card) return Bytes{0};
    const Bytes given = less(available, margin_on(options_, cluster_.cards[card], in_bytes));
    return kept_ == nullptr ? given : std::min(given, kept_->most_on(card));
  });
  known_.emplace_back(asked, most);
  return most;
}

std::optional<Reservation> EarliestStart::find(const QueueOptions& options, const ClusterView& cluster,
                                               GroupId group, SimTime now) {
  const JobDemand& demand = cluster.waiting.demand(group);
  const auto nodes = cluster.index.nodes();
  if (group_ != group) known_.assign(nodes.size(), {});
  group_ = group;
  std::pair<SimTime, NodeId> best{SimTime::max(), 0};
  const auto look_at = [&](NodeId node) {
    const bool allowed = (demand.pools >> nodes[node].pool & 1) != 0;
    if (!allowed || cards_to_use(options, nodes[node]) < demand.cards) return;
    Known& known = known_[node];
    if (known.version != cluster.running.version(node)) {
      known = {cluster.running.version(node), NodeFuture{options, cluster, node, demand}.first_time()};
    }
    if (known.at == SimTime::max()) return;
    best = std::min(best, {std::max(known.at, now), node});  // what runs longer than it said may end any time
  };
  const auto takes = [&](CardId card, Bytes need) {
    return can_take(options, card, cluster.cards[card], demand, need);
  };
  if (cluster.index.find(demand, demand.batch, takes)) {  // now already, but for its quota
    for (NodeId node = 0; node < nodes.size(); ++node) look_at(node);
  }
  for (const auto& [first_end, node] : cluster.running.by_first_end()) {  // none has room before that
    if (first_end == SimTime::max() || first_end > best.first) break;
    look_at(node);
  }
  if (best.first == SimTime::max()) return std::nullopt;
  NodeFuture future{options, cluster, best.second, demand};
  future.first_time();
  Reservation reservation = future.reserve();
  reservation.at = best.first;
  return reservation;
}

}  // namespace vramlab
