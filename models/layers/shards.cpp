#include "models/layers/shards.hpp"

#include <utility>

namespace vramlab::layers {

std::int64_t shard_elements(const Weight& weight, std::int64_t cards) {
  return weight.is_buffer ? weight.elements : (weight.elements + cards - 1) / cards;
}

void Shards::add_group(std::span<const Weight> weights) {
  Group group;
  for (const Weight& weight : weights) {
    if (weight.is_buffer) continue;
    const std::int64_t shard = shard_elements(weight, cards_);
    group.weights.push_back(weight);
    group.elements += shard * cards_;
    group.shard += shard;
    group.trained_shard += weight.trained ? shard : 0;
    group.trained += weight.trained ? shard * cards_ : 0;
  }
  groups_.push_back(std::move(group));
}

void Shards::take(const Weight& weight, Gradient gradient) {
  if (!gradients_.contains(weight.index)) gradients_.emplace(weight.index, std::move(gradient));
}

// The shards in the number that layers compute with, and room for those of all cards.
Memory Shards::begin(const Group& group) {
  const Purpose before = std::exchange(tape_.purpose, Purpose::gathered);
  const Value own = tape_.tensor(group.shard, number_);
  Memory all = tape_.tensor(group.elements, number_).memory;
  tape_.purpose = before;
  return all;
}

void Shards::copy_out(std::size_t group) {
  const Purpose before = std::exchange(tape_.purpose, Purpose::gathered);
  for (const Weight& weight : groups_[group].weights) {
    whole_[group].push_back(tape_.tensor(weight.elements, number_).memory);
  }
  tape_.purpose = before;
}

void Shards::gather(std::size_t group) {
  Memory all = begin(groups_[group]);
  copy_out(group);
  last_ = std::move(all);
}

void Shards::begin_backward() {
  last_.reset();
  if (groups_.size() > 1) begun_[groups_.size() - 2] = begin(groups_[groups_.size() - 2]);
}

void Shards::gather_again(std::size_t group) {
  if (!begun_.contains(group)) begun_[group] = begin(groups_[group]);
  copy_out(group);
  begun_.erase(group);
  if (group > 0) begun_[group - 1] = begin(groups_[group - 1]);
}

void Shards::reduce(std::size_t number) {
  const Group& group = groups_[number];
  release(number);
  if (group.trained == 0) return;
  const Purpose before = std::exchange(tape_.purpose, Purpose::gathered);
  sent_.reset();
  sent_ = tape_.tensor(group.trained, number_).memory;
  for (const Weight& weight : group.weights) gradients_.erase(weight.index);
  const Value own = tape_.tensor(group.trained_shard, number_);
  tape_.purpose = before;
  // One block for the gradients of the whole group, in the slot of its first weight.
  const Weight& first = group.weights.front();
  tape_.allocate_kept(
      {slots_.gradient(first), static_cast<Bytes>(group.trained_shard) * bytes_of(first.number)});
}

void Shards::finish() {
  last_.reset();
  sent_.reset();
  begun_.clear();
  whole_.clear();
  gradients_.clear();
}

}  // namespace vramlab::layers
