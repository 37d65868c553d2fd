#include "policies/queue_admission.hpp"

#include <algorithm>

namespace vramlab {
namespace {

constexpr Bytes kBusyPercent = 90;  // P3.2

std::string per_card(Bytes need, std::int32_t cards) {
  return cards == 1 ? format_bytes(need)
                    : format_bytes(need) + " on each of " + std::to_string(cards) + " cards";
}

std::int64_t smallest_batch(const QueueOptions& options, const JobDemand& demand) {
  return options.degrade == Degrade::never ? demand.batch : 1;
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

std::optional<Bytes> available_bytes(const QueueOptions& options, const CardView& card) {
  if (options.max_concurrent_jobs > 0 && card.jobs >= options.max_concurrent_jobs) return std::nullopt;
  const Bytes kept = taken_bytes(options, card) + options.margin();
  return card.total > kept ? card.total - kept : 0;
}

CardStatus card_status(const QueueOptions& options, const CardView& card) {
  const Bytes taken = taken_bytes(options, card);
  const Bytes free = card.total > taken ? card.total - taken : 0;
  if (free < options.margin()) return CardStatus::out_of_memory;
  return taken * 100 > card.total * kBusyPercent ? CardStatus::busy : CardStatus::available;
}

std::string_view status_name(CardStatus status) {
  switch (status) {
    case CardStatus::busy:
      return "busy";
    case CardStatus::out_of_memory:
      return "out of memory";
    case CardStatus::available:
      break;
  }
  return "available";
}

std::optional<std::string> never_fits(const QueueOptions& options, const JobDemand& demand,
                                      const ClusterView& cluster) {
  const std::int64_t batch = smallest_batch(options, demand);
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
    if (need + margin <= total) {
      largest = total;
      least = need;
      break;
    }
    if (total > largest) {
      largest = total;
      least = need;
    }
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

}  // namespace vramlab
