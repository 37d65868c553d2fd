#include "policies/contract/cards.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace vramlab {

CardIndex::CardIndex(std::vector<CardPool> pools, std::vector<CardNode> nodes, FitRule rule)
    : pools_(std::move(pools)), nodes_(std::move(nodes)), rule_(rule) {
  if (pools_.size() > 64) throw InternalError("a cluster has more than 64 kinds of cards");
  std::vector<std::uint32_t> cards_of(pools_.size());
  std::vector<std::uint32_t> nodes_of(pools_.size());
  for (NodeId n = 0; n < nodes_.size(); ++n) {
    const CardNode& node = nodes_[n];
    node_place_in_pool_.push_back(nodes_of[node.pool]++);
    for (std::uint32_t i = 0; i < node.count; ++i) {
      node_of_.push_back(n);
      place_in_pool_.push_back(cards_of[node.pool]++);
    }
  }
  available_.assign(node_of_.size(), -1);
}

std::optional<Bytes> CardIndex::available(CardId card) const {
  if (available_[card] < 0) return std::nullopt;
  return static_cast<Bytes>(available_[card]);
}

Bytes CardIndex::most_given(const CardsAsked& asked, const Give& give) {
  Value most = 0;
  for (std::uint32_t pool = 0; pool < pools_.size(); ++pool) {
    if ((asked.pools >> pool & 1) == 0) continue;
    const Lane& units = lane(pool, asked.cards);
    if (rule_ == FitRule::first) {
      for (auto place = next_at_least(units, 0, most + 1); place;
           place = next_at_least(units, *place + 1, most + 1)) {
        most = std::max(most, given(units, *place, give));
      }
    } else {
      for (auto at = units.sizes.rbegin(); at != units.sizes.rend() && at->first > most; ++at) {
        most = std::max(most, given(units, at->second, give));
      }
    }
  }
  return static_cast<Bytes>(most);
}

CardIndex::Value CardIndex::given(const Lane& lane, std::uint32_t place, const Give& give) const {
  const auto by_card = [&](CardId card) {
    return available_[card] <= 0 ? 0 : static_cast<Value>(give(card, static_cast<Bytes>(available_[card])));
  };
  if (lane.cards == 1) return by_card(lane.units[place]);
  const CardNode& node = nodes_[lane.units[place]];
  const auto wanted = static_cast<std::uint32_t>(lane.cards);
  std::vector<Value> values(node.count);
  for (std::uint32_t i = 0; i < node.count; ++i) values[i] = by_card(node.first + i);
  std::nth_element(values.begin(), values.begin() + (wanted - 1), values.end(), std::greater<>{});
  return values[wanted - 1];
}

void CardIndex::set(CardId card, std::optional<Bytes> available) {
  const Value value = available ? static_cast<Value>(*available) : -1;
  if (available_[card] == value) return;
  available_[card] = value;
  const NodeId node = node_of_[card];
  for (Lane& lane : lanes_) {
    if (lane.pool != nodes_[node].pool) continue;
    if (lane.cards == 1) {
      store(lane, place_in_pool_[card], value);
    } else {
      store(lane, node_place_in_pool_[node], value_of(lane, node));
    }
  }
}

CardIndex::Lane& CardIndex::lane(std::uint32_t pool, std::int32_t cards) {
  for (Lane& known : lanes_) {
    if (known.pool == pool && known.cards == cards) return known;
  }
  Lane fresh{.cards = cards, .pool = pool, .units = {}, .values = {}, .tree = {}, .leaves = 1, .sizes = {}};
  for (NodeId n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].pool != pool) continue;
    if (cards > 1) fresh.units.push_back(n);
    for (std::uint32_t i = 0; cards == 1 && i < nodes_[n].count; ++i)
      fresh.units.push_back(nodes_[n].first + i);
  }
  while (fresh.leaves < fresh.units.size()) fresh.leaves *= 2;
  fresh.values.assign(fresh.units.size(), -2);  // below every value, so that each is stored
  if (rule_ == FitRule::first) fresh.tree.assign(2 * fresh.leaves, -1);
  for (std::uint32_t place = 0; place < fresh.units.size(); ++place) {
    store(fresh, place, value_of(fresh, fresh.units[place]));
  }
  return lanes_.emplace_back(std::move(fresh));
}

CardIndex::Value CardIndex::value_of(const Lane& lane, std::uint32_t unit) const {
  if (lane.cards == 1) return available_[unit];
  const CardNode& node = nodes_[unit];
  const auto wanted = static_cast<std::uint32_t>(lane.cards);
  if (node.count < wanted) return -1;
  const auto first = available_.begin() + node.first;
  std::vector<Value> values(first, first + node.count);
  std::nth_element(values.begin(), values.begin() + (wanted - 1), values.end(), std::greater<>{});
  return values[wanted - 1];
}

void CardIndex::store(Lane& lane, std::uint32_t place, Value value) const {
  if (lane.values[place] == value) return;
  if (rule_ == FitRule::first) {
    std::size_t at = lane.leaves + place;
    lane.tree[at] = value;
    for (at /= 2; at >= 1; at /= 2) lane.tree[at] = std::max(lane.tree[2 * at], lane.tree[2 * at + 1]);
  } else {
    lane.sizes.erase({lane.values[place], place});
    if (value >= 0) lane.sizes.emplace(value, place);
  }
  lane.values[place] = value;
}

// The lowest place from `from` on whose value is at least `need`.
std::optional<std::uint32_t> CardIndex::next_at_least(const Lane& lane, std::uint32_t from, Value need) {
  if (from >= lane.units.size()) return std::nullopt;
  std::size_t at = lane.leaves + from;
  while (lane.tree[at] < need) {
    while (at % 2 == 1) at /= 2;  // a right child: nothing further right below its parent
    if (at == 0) return std::nullopt;
    ++at;  // the sibling to the right
  }
  while (at < lane.leaves) at = lane.tree[2 * at] >= need ? 2 * at : 2 * at + 1;
  return static_cast<std::uint32_t>(at - lane.leaves);
}

bool CardIndex::collect(const Lane& lane, std::uint32_t place, Bytes need, const Accept& accept,
                        std::vector<CardId>& cards) const {
  cards.clear();
  const auto wanted = static_cast<std::size_t>(lane.cards);
  const std::uint32_t unit = lane.units[place];
  const CardId first = lane.cards == 1 ? unit : nodes_[unit].first;
  const CardId end = lane.cards == 1 ? unit + 1 : first + nodes_[unit].count;
  for (CardId card = first; card < end && cards.size() < wanted; ++card) {
    const bool fits = available_[card] >= static_cast<Value>(need);
    if (fits && (!accept || accept(card, need))) cards.push_back(card);
  }
  return cards.size() == wanted;
}

std::optional<CardIndex::Candidate> CardIndex::search_first(const Lane& lane, Bytes need,
                                                            const Accept& accept) const {
  Candidate found;
  const auto least = static_cast<Value>(need);
  for (auto place = next_at_least(lane, 0, least); place; place = next_at_least(lane, *place + 1, least)) {
    if (!collect(lane, *place, need, accept, found.place.cards)) continue;
    found.score = static_cast<std::int64_t>(found.place.cards.front());
    return found;
  }
  return std::nullopt;
}

std::optional<CardIndex::Candidate> CardIndex::search_worst(const Lane& lane, Bytes need,
                                                            const Accept& accept) const {
  Candidate found;
  auto at = lane.sizes.end();
  while (at != lane.sizes.begin()) {
    --at;
    if (at->first < static_cast<Value>(need)) break;
    // Equal values lie with the lower place first; walk to the first of them.
    auto first = lane.sizes.lower_bound({at->first, 0});
    for (auto equal = first; equal != lane.sizes.end() && equal->first == first->first; ++equal) {
      if (!collect(lane, equal->second, need, accept, found.place.cards)) continue;
      found.score = static_cast<std::int64_t>(need) - equal->first;
      return found;
    }
    at = first;
  }
  return std::nullopt;
}

std::optional<CardIndex::Candidate> CardIndex::search_sized(const Lane& lane, Bytes need,
                                                            const Accept& accept, const Cost& cost) const {
  std::optional<Candidate> best;
  std::vector<CardId> cards;
  auto at = lane.sizes.lower_bound({static_cast<Value>(need), 0});
  while (at != lane.sizes.end()) {
    const Value value = at->first;
    const std::int64_t score =
        cost ? cost(static_cast<Bytes>(value), need) : value - static_cast<std::int64_t>(need);
    bool taken = false;
    for (; at != lane.sizes.end() && at->first == value; ++at) {
      if (taken || (best && score >= best->score)) {
        at = lane.sizes.upper_bound({value, ~std::uint32_t{0}});
        break;
      }
      taken = collect(lane, at->second, need, accept, cards);
      if (taken) best = Candidate{score, {cards, need}};
    }
    if (best && !cost) return best;  // every further one leaves more over
  }
  return best;
}

std::optional<CardIndex::Place> CardIndex::find(const JobDemand& demand, std::int64_t batch,
                                                const Accept& accept, const Cost& cost) {
  ++searches_;
  std::optional<Candidate> best;
  for (std::uint32_t pool = 0; pool < pools_.size(); ++pool) {
    if ((demand.pools >> pool & 1) == 0) continue;
    const Bytes need = demand.need(batch, pools_[pool].total);
    if (need > pools_[pool].total) continue;
    const Lane& units = lane(pool, demand.cards);
    auto found = rule_ == FitRule::first ? search_first(units, need, accept)
                 : rule_ == FitRule::worst
                     ? search_worst(units, need, accept)
                     : search_sized(units, need, accept, rule_ == FitRule::best ? Cost{} : cost);
    if (!found) continue;
    found->place.need = need;
    const bool better = !best || found->score < best->score ||
                        (found->score == best->score && found->place.cards < best->place.cards);
    if (better) best = std::move(found);
  }
  if (!best) return std::nullopt;
  return std::move(best->place);
}

Bytes CardIndex::largest_total(const JobDemand& demand) const {
  Bytes largest = 0;
  for (const CardNode& node : nodes_) {
    const bool allowed = (demand.pools >> node.pool & 1) != 0;
    if (allowed && node.count >= static_cast<std::uint32_t>(demand.cards)) {
      largest = std::max(largest, pools_[node.pool].total);
    }
  }
  return largest;
}

}  // namespace vramlab
