#include "policies/candidates.hpp"

#include <algorithm>
#include <numeric>

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"

namespace vramlab {

Candidates::Candidates(std::size_t size, std::uint64_t seed, std::int64_t epoch, bool shuffle)
    : seed_(seed), epoch_(epoch), order_(size), states_(size, State::unseen), left_(size) {
  waiting_.reserve(size);  // now, so that it does not grow while a plugin looks, and is held against it
  order(shuffle);
}

Candidates::Candidates(std::size_t size, const EpochPosition& from, bool shuffle)
    : Candidates(size, from.seed, from.epoch, shuffle) {
  if (from.position > size || from.waiting.size() > from.position) {
    throw InputError("", "the state to go on from is not of this data set.");
  }
  next_ = from.position;
  for (std::size_t i = 0; i < next_; ++i) states_[order_[i]] = State::taken;
  for (const SampleId id : from.waiting) {
    if (id >= size || states_[id] != State::taken) {
      throw InputError(
          "", "the state to go on from names a sample that cannot wait: " + std::to_string(id) + ".");
    }
    states_[id] = State::waiting;
  }
  waiting_.assign(from.waiting.begin(), from.waiting.end());
  left_ = size - next_ + waiting_.size();
}

void Candidates::order(bool shuffle) {
  std::iota(order_.begin(), order_.end(), SampleId{0});
  if (!shuffle) return;
  Random random{seed_ ^ (static_cast<std::uint64_t>(epoch_) * 0x9E3779B97F4A7C15u)};
  random.shuffle(std::span{order_});
}

std::span<const SampleId> Candidates::look(std::size_t count) {
  drop_taken();
  while (waiting_.size() < count && next_ < order_.size()) {
    states_[order_[next_]] = State::waiting;
    waiting_.push_back(order_[next_++]);
  }
  return {waiting_.data(), std::min(count, waiting_.size())};
}

void Candidates::take(std::span<const SampleId> batch) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i] < states_.size() && states_[batch[i]] == State::waiting) {
      states_[batch[i]] = State::taken;
      continue;
    }
    for (std::size_t done = 0; done < i; ++done) states_[batch[done]] = State::waiting;
    throw InternalError("a composer named a sample that does not wait");
  }
  left_ -= batch.size();
  taken_ += batch.size();
}

// First those that are still listed as waiting but were taken, or they would stand there twice.
void Candidates::put_back(std::span<const SampleId> batch) {
  drop_taken();
  waiting_.insert(waiting_.begin(), batch.begin(), batch.end());
  for (const SampleId id : batch) states_[id] = State::waiting;
  left_ += batch.size();
}

EpochPosition Candidates::position() const {
  EpochPosition position{.seed = seed_, .epoch = epoch_, .position = next_};
  std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(position.waiting),
               [&](SampleId id) { return states_[id] == State::waiting; });
  return position;
}

void Candidates::drop_taken() {
  if (std::exchange(taken_, 0) == 0) return;
  std::erase_if(waiting_, [&](SampleId id) { return states_[id] == State::taken; });
}

}  // namespace vramlab
