// Weights shared by several cards (fully_shard of torch.distributed.fsdp): each layer's are gathered for its
// forward and its backward pass, and its gradients are summed into shards.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "models/layers/tape.hpp"
#include "models/layers/weights.hpp"

namespace vramlab::layers {

/// Elements of a weight that each of `cards` keeps.
std::int64_t shard_elements(const Weight& weight, std::int64_t cards);

/// What one card does with its shards in a step. Groups are the layers in the order of the forward pass, and
/// behind them one for all the rest, which stays gathered.
class Shards {
 public:
  Shards(Tape& tape, const KeptSlots& slots, std::int64_t cards, Number gathered)
      : tape_(tape), slots_(slots), cards_(cards), number_(gathered) {}

  /// The number that layers compute with.
  [[nodiscard]] Number number() const { return number_; }

  /// Adds a group of weights; groups are numbered from 0.
  void add_group(std::span<const Weight> weights);
  [[nodiscard]] std::size_t groups() const { return groups_.size(); }

  /// Takes the whole gradient of a weight until its group is reduced.
  void take(const Weight& weight, Gradient gradient);

  /// In the forward pass: gathers a group, and lets it go.
  void gather(std::size_t group);
  void release(std::size_t group) { whole_[group].clear(); }

  /// Before the backward pass: begins to gather the last layer.
  void begin_backward();
  /// In the backward pass: gathers a group and begins with the one before it.
  void gather_again(std::size_t group);
  /// Lets a group go, and sums its gradients.
  void reduce(std::size_t group);

  /// Frees what a pass leaves behind.
  void finish();

 private:
  struct Group {
    std::vector<Weight> weights;
    std::int64_t elements = 0;
    std::int64_t shard = 0;          ///< elements of this card's shards
    std::int64_t trained_shard = 0;  ///< of those that are trained
    std::int64_t trained = 0;
  };

  Memory begin(const Group& group);
  void copy_out(std::size_t group);

  Tape& tape_;
  const KeptSlots& slots_;
  std::int64_t cards_;
  Number number_;
  std::vector<Group> groups_;
  std::map<std::size_t, std::vector<Memory>> whole_;  // by group: its weights
  std::map<std::size_t, Memory> begun_;               // by group: what was gathered and not yet copied out
  Memory last_;                                       // of the group gathered last
  Memory sent_;                                       // of the gradients summed last
  std::map<std::uint32_t, Gradient> gradients_;
};

}  // namespace vramlab::layers
